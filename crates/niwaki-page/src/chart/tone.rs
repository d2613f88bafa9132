//! Colours by role: which series gets which of the palette's eight hues, the same one in every panel of a drawing.

/// A series' colour. The palette is colour-blind safe and has a light and a dark form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// The next free hue, the same for the same name everywhere in one drawing. The default.
    #[default]
    Auto,
    /// A hue by number, counted round the palette of eight.
    Hue(usize),
    /// The text's own colour.
    Ink,
    /// Grey, for what is only there to compare with.
    Soft,
}

/// Hands out hues by name, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    names: Vec<String>,
}

/// A tone that is settled: a CSS class, and a turn that varies marker and dash so that colour is not alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hue {
    pub(crate) class: &'static str,
    pub(crate) turn: usize,
}

const CLASSES: [&str; 8] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"];

impl Palette {
    pub(crate) fn settle(&mut self, name: &str, wish: Tone) -> Hue {
        let turn = match wish {
            Tone::Ink => return Hue { class: "ink", turn: 0 },
            Tone::Soft => return Hue { class: "soft", turn: 0 },
            Tone::Hue(turn) => turn,
            Tone::Auto => self.names.iter().position(|known| known == name).unwrap_or_else(|| {
                self.names.push(name.to_string());
                self.names.len() - 1
            }),
        };
        Hue { class: CLASSES[turn % CLASSES.len()], turn }
    }
}

impl Hue {
    /// Beyond the eighth series hues repeat, told apart by dashes.
    pub(crate) fn repeats(self) -> bool {
        self.turn >= CLASSES.len()
    }
}
