//! Parquet: one row per trajectory, lists as list columns.
//!
//! Each column that a pass wants is a stream of its own, decoded page by page, so that memory does not grow with the
//! file. A reader of our own: a dump needs flat columns and lists of numbers only, and the `parquet` crate with its two
//! codecs weighs on every cold build (figures under `results/`). Plain, dictionary, delta and split encodings, both
//! versions of pages; snappy, zstd, gzip or no packing. Anything else is refused by name.
//!
//! | file | what belongs there |
//! |---|---|
//! | `thrift.rs` | the encoding of headers |
//! | `meta.rs` | footer, schema and page headers |
//! | `codec.rs` | how pages are packed |
//! | `decode.rs` | runs, and the encodings of values |
//! | `column.rs` | a column as a stream of rows |
//! | `rows.rs` | the columns of a dump, row by row |

mod codec;
mod column;
mod decode;
mod meta;
mod rows;
mod thrift;

pub(super) use rows::Table;
