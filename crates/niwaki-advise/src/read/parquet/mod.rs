//! Parquet: one row per trajectory, lists as list columns.
//!
//! Each column that a pass wants is a stream of its own, decoded page by page and within a page a batch at a time, so that
//! memory does not grow with the file. A reader of our own, for reasons measured in `docs/decision-parquet.md`: the `parquet`
//! crate unpacks gzip pages to whatever size they have and panics on some files that lie. Plain, dictionary, delta and
//! split encodings, both versions of pages; snappy, zstd, gzip or no packing. Anything else is refused by name.
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
