//! Instances drawn as files: a name and a text each.

use crate::Result;
use crate::formats::Format;
use crate::generate::{Size, Task, generate};

/// Instances to draw.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    /// What is drawn.
    pub task: Task,
    /// Jobs and machines of each.
    pub size: Size,
    /// The seed; an instance of it is the same however many are drawn.
    pub seed: u64,
    /// The layout; the problem's usual one where absent.
    pub format: Option<Format>,
}

/// An instance as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnFile {
    /// Its name: task, size, seed and number, with the layout's ending.
    pub name: String,
    /// What it holds.
    pub text: String,
}

impl Draws {
    /// The instance of a number.
    ///
    /// # Errors
    /// If the task has no such size, or the layout cannot hold the problem.
    pub fn file(&self, index: u64) -> Result<DrawnFile> {
        let instance = generate(self.task, self.size, self.seed, index)?;
        let format = self.format.unwrap_or_else(|| Format::usual(&instance));
        let (task, Size { jobs, machines }, ending) = (self.task.name(), self.size, format.extension());
        Ok(DrawnFile {
            name: format!("{task}-{jobs}x{machines}-{}-{index:04}.{ending}", self.seed),
            text: format.write(&instance)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::read;

    #[test]
    fn a_drawn_file_is_the_instance_of_its_name() {
        let size = Size { jobs: 3, machines: 2 };
        let draws = Draws { task: Task::HardFlow, size, seed: 5, format: None };
        let file = draws.file(7).unwrap();
        assert_eq!(file.name, "hard-flow-3x2-5-0007.txt");
        assert_eq!(read(&file.text).unwrap(), generate(Task::HardFlow, size, 5, 7).unwrap());
        let other = Draws { format: Some(Format::Taillard), ..draws };
        assert_ne!(other.file(7).unwrap().text, file.text);
    }
}
