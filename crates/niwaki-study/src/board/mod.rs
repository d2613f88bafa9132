//! Many runs on one page. Every statistic is decided by [`runs::Comparison`](crate::runs::Comparison); the script draws.
//!
//! | file | what belongs there |
//! |---|---|
//! | `page.rs` | the page: what it says without a script |
//! | `data.rs` | what the script shows |
//! | `best.rs` | the best setting of each arm, chosen and told on different seeds |
//! | `bands.rs` | the curve of a group with its bands |
//! | `board.js`, `draw.js`, `board.css` | choices and sections; figures and tables; their looks |

mod bands;
mod best;
mod data;
mod page;

pub use best::Best;
pub use data::board_data;
pub use page::{board_page, curves};
