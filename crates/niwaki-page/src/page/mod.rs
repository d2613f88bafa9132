//! The document: a title, sections of blocks, how it was made. Builders only; `html` writes them.

mod html;

use crate::chart::Chart;
use crate::table::Table;

/// A report page; [`Page::to_html`] gives one self-contained file.
///
/// In prose, notes and captions, text between backticks is code and text between double asterisks is strong;
/// everything is escaped.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    subtitle: Option<String>,
    lead: Option<String>,
    tiles: Vec<Tile>,
    sections: Vec<Section>,
    made: Option<Made>,
    footer: Option<String>,
    live: Option<Live>,
}

/// What a page's own script shows: it may put choices in the place of what the page says without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// The id of the element that holds the data.
    pub id: &'static str,
    /// What is shown, as JSON.
    pub data: String,
    /// The scripts, in order; they share one scope, and no other one sees it.
    pub scripts: &'static [&'static str],
    /// Their style.
    pub style: &'static str,
}

impl Page {
    /// A page with a title and nothing else.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: None,
            lead: None,
            tiles: Vec::new(),
            sections: Vec::new(),
            made: None,
            footer: None,
            live: None,
        }
    }

    /// Adds a script of the page's own. The page has to say what matters without it, too.
    pub fn live(mut self, live: Live) -> Self {
        self.live = Some(live);
        self
    }

    /// A line under the title.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = Some(subtitle.into());
        self
    }

    /// The sentence a hurried reader takes away.
    pub fn lead(mut self, lead: impl Into<String>) -> Self {
        self.lead = Some(lead.into());
        self
    }

    /// Adds a key number to the row under the lead.
    pub fn tile(mut self, tile: Tile) -> Self {
        self.tiles.push(tile);
        self
    }

    /// Adds a section; from four sections on, the page lists them at its head.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// How the page was made, printed at its end.
    pub fn made(mut self, made: Made) -> Self {
        self.made = Some(made);
        self
    }

    /// The last line.
    pub fn footer(mut self, footer: impl Into<String>) -> Self {
        self.footer = Some(footer.into());
        self
    }

    /// The figures of all sections, in order, for a page that shows some of another's.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
    }

    /// The whole page as one HTML file without links to assets or use of a network. A small script inside lets readers zoom,
    /// hide series and read values; nothing depends on it.
    pub fn to_html(&self) -> String {
        html::render(self)
    }

    /// Whether a text is a page of ours whose [`Made`] names this command.
    pub fn is_made_by(text: &str, command: &str) -> bool {
        html::is_made_by(text, command)
    }
}

/// A part of a page: a heading and blocks in order.
#[derive(Debug, Clone)]
pub struct Section {
    heading: String,
    id: Option<String>,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
enum Block {
    Prose(String),
    Note(String),
    Callout(Callout),
    Tiles(Vec<Tile>),
    List(Vec<String>),
    Folded { summary: String, points: Vec<String> },
    FoldedTable { summary: String, table: Table },
    Code { label: Option<String>, text: String },
    Link { text: String, to: String },
    Table(Table),
    Figure(Figure),
}

impl Section {
    /// An empty section; its anchor is made from the heading.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), id: None, blocks: Vec::new() }
    }

    /// Sets the anchor.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a paragraph.
    pub fn prose(self, text: impl Into<String>) -> Self {
        self.with(Block::Prose(text.into()))
    }

    /// Adds a remark in small type.
    pub fn note(self, text: impl Into<String>) -> Self {
        self.with(Block::Note(text.into()))
    }

    /// Adds a callout.
    pub fn callout(self, callout: Callout) -> Self {
        self.with(Block::Callout(callout))
    }

    /// Adds a row of key numbers.
    pub fn tiles(self, tiles: impl IntoIterator<Item = Tile>) -> Self {
        self.with(Block::Tiles(tiles.into_iter().collect()))
    }

    /// Adds a list that opens with a click.
    pub fn folded(
        self,
        summary: impl Into<String>,
        points: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        self.with(Block::Folded { summary: summary.into(), points })
    }

    /// Adds a table that is shown when its summary is opened.
    pub fn folded_table(self, summary: impl Into<String>, table: Table) -> Self {
        self.with(Block::FoldedTable { summary: summary.into(), table })
    }

    /// Adds a list of short points.
    pub fn list<T: Into<String>>(self, points: impl IntoIterator<Item = T>) -> Self {
        self.with(Block::List(points.into_iter().map(Into::into).collect()))
    }

    /// Adds a block of code or output, set as it stands.
    pub fn code(self, text: impl Into<String>) -> Self {
        self.with(Block::Code { label: None, text: text.into() })
    }

    /// Adds a command to type, under a line that says what it does.
    pub fn command(self, label: impl Into<String>, command: impl Into<String>) -> Self {
        self.with(Block::Code { label: Some(label.into()), text: command.into() })
    }

    /// Adds a line that leads to another file beside the page, by its relative path.
    pub fn link(self, text: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(Block::Link { text: text.into(), to: to.into() })
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Self {
        self.with(Block::Table(table))
    }

    /// Adds a figure.
    pub fn figure(self, figure: Figure) -> Self {
        self.with(Block::Figure(figure))
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

/// A callout: a judgement in plain words and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callout {
    mood: Mood,
    says: String,
    because: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    Neutral,
    Bad,
}

impl Callout {
    /// All is well.
    pub fn good(says: impl Into<String>, because: impl Into<String>) -> Self {
        Self { mood: Mood::Good, says: says.into(), because: because.into() }
    }

    /// Neither: not measured, no difference, or it depends.
    pub fn neutral(says: impl Into<String>, because: impl Into<String>) -> Self {
        Self { mood: Mood::Neutral, says: says.into(), because: because.into() }
    }

    /// Something is wrong.
    pub fn bad(says: impl Into<String>, because: impl Into<String>) -> Self {
        Self { mood: Mood::Bad, says: says.into(), because: because.into() }
    }
}

/// A key number: what it is, the number as text, and what to make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    label: String,
    value: String,
    note: Option<String>,
}

impl Tile {
    /// A tile; format the value with [`crate::Format::text`].
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into(), note: None }
    }

    /// A line under the number.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// How a page was made: the command, and facts such as commit, machine and date.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    command: String,
    facts: Vec<(String, String)>,
}

impl Made {
    /// The command that makes the page again.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), facts: Vec::new() }
    }

    /// Adds a fact, such as `fact("commit", "0833401")`.
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }
}

/// A chart with its caption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    svg: String,
    /// The same for a phone; the one drawing serves both where absent.
    narrow: Option<String>,
    title: String,
    caption: String,
    hint: String,
}

impl Figure {
    /// Draws the chart; its title leads the caption.
    pub fn new(chart: &impl Chart) -> Self {
        Self {
            svg: chart.to_svg(),
            narrow: Some(chart.to_narrow_svg()),
            title: chart.title().to_string(),
            caption: String::new(),
            hint: String::new(),
        }
    }

    /// A drawing made elsewhere (a Gantt chart, say) as an `<svg>` element, which is trusted as it stands.
    pub fn from_svg(title: impl Into<String>, svg: impl Into<String>) -> Self {
        Self {
            svg: svg.into(),
            narrow: None,
            title: title.into(),
            caption: String::new(),
            hint: String::new(),
        }
    }

    /// The same drawing for the width of a phone; the wide one is then not shown there.
    pub fn narrow(mut self, svg: impl Into<String>) -> Self {
        self.narrow = Some(svg.into());
        self
    }

    /// What to see in the chart, and how it was made.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }
    /// What readers can do with it on a screen: set after the caption, and left out on paper.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}
