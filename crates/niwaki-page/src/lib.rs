//! Self-contained report pages and charts: data in, `String` out.
//!
//! A report is one HTML file that opens anywhere, years later, without a network: style inline, charts as inline
//! SVG, and one small script (`page/page.js`) that adds zoom, toggles and values under the pointer to what is already
//! readable without it. The same input gives the same bytes, so a report can be compared, cached and snapshot-tested.
//! Nothing here fails: odd input (no data, NaN, ragged rows, a log axis below zero) has a defined, visible rendering,
//! so the crate has no error type.
//!
//! - [`Page`], [`Section`], [`Callout`], [`Tile`], [`Made`]: the document, from title to footer.
//! - [`Table`], [`Column`], [`Cell`], [`Format`]: one object for the page, the terminal ([`Table::to_text`]) and
//!   CSV ([`Table::to_csv`]).
//! - [`Figure`] and the charts: [`LineChart`], [`ScatterChart`], [`BarChart`], [`ForestChart`], [`Histogram`],
//!   [`Heatmap`] and [`Grid`] (small multiples). Each compiles to marks on two [`Scale`]s, and one panel renderer
//!   draws them all.
//!
//! Why not `plotters`: its SVG backend writes fixed colours and pixel-placed text. These charts carry CSS classes
//! instead, so one drawing follows the reader's light or dark theme and prints well, and every point answers a hover
//! with its values through a plain `<title>`.
//!
//! ```
//! use niwaki_page::{Axis, Cell, Column, Figure, LineChart, Page, Section, Series, Table, Callout};
//!
//! let chart = LineChart::new("Bias falls with the correction")
//!     .x(Axis::linear("update"))
//!     .y(Axis::log("mean |bias|"))
//!     .series(Series::new("PPO", [(0.0, 1e-2), (1.0, 2e-2), (2.0, 5e-2)]))
//!     .series(Series::new("corrected", [(0.0, 1e-2), (1.0, 4e-3), (2.0, 1e-3)]));
//! let table = Table::new("Bias at the last update")
//!     .column(Column::text("arm"))
//!     .column(Column::number("bias"))
//!     .row([Cell::from("PPO"), Cell::from(5e-2)])
//!     .row([Cell::from("corrected"), Cell::from(1e-3).best()]);
//! println!("{}", table.to_text(80));
//! let page = Page::new("A small study").section(
//!     Section::new("Result")
//!         .callout(Callout::good("The correction helps", "Its bias is fifty times smaller."))
//!         .figure(Figure::new(&chart).caption("One seed."))
//!         .table(table),
//! );
//! assert!(page.to_html().starts_with("<!DOCTYPE html>"));
//! ```

mod chart;
mod inline;
mod number;
mod page;
mod table;

pub use chart::{
    Axis, BarChart, Bars, Chart, Cloud, Drawing, ForestChart, Grid, Heatmap, Histogram, Interval, Legend,
    LineChart, Scale, ScatterChart, Series, Tick, Tone,
};
pub use inline::visible;
pub use number::Format;
pub use page::{Callout, Figure, Live, Made, Page, Section, Tile};
pub use table::{Cell, Column, Table, csv_text};

/// The README's example is run with the other ones.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
