//! Losses that are functions in a Python file: a Python process beside this one says what they come to.
//!
//! The process runs `_loss.py` of the package, which is part of this program, so that NumPy is all it needs.

use anyhow::{Context, bail};
use niwaki_correction::Correction;
use niwaki_correction::family::{Steps, Terms};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// What the process runs.
const PROGRAM: &str = include_str!("../../../python/niwaki/_loss.py");

/// What a function was refused for, while it was measured.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<String>>>);

impl Fault {
    /// Refuses what came of a function that failed.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(fault) => bail!(fault),
            None => Ok(()),
        }
    }

    fn note(&self, fault: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }
}

/// The loss that `FILE.py:FUNCTION` names; `fault` keeps what it is refused for later.
pub(crate) fn loss(text: &str, fault: &Fault) -> anyhow::Result<Correction> {
    let flag = format!("--loss {text}");
    let (place, name) = text.rsplit_once(':').with_context(|| format!("{flag}: write FILE.py:FUNCTION"))?;
    let mut process = Process::start(place, name).with_context(|| flag.clone())?;
    process.answer(&mut []).map_err(|error| anyhow::anyhow!("{flag}: {error}"))?;
    let (process, fault) = (Mutex::new(process), fault.clone());
    let asked = move |steps: &Steps<'_>| {
        let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
        process.terms(steps).unwrap_or_else(|error| {
            fault.note(format!("{flag}: {error}"));
            let nothing = vec![f64::NAN; steps.len()];
            Terms { value: nothing.clone(), own: nothing.clone(), routed: nothing.clone(), factor: nothing }
        })
    };
    Correction::called(name, asked).with_context(|| format!("--loss {text}"))
}

/// A Python process that answers for one function.
struct Process {
    child: Child,
    questions: Option<ChildStdin>,
    answers: ChildStdout,
}

impl Process {
    fn start(place: &str, name: &str) -> anyhow::Result<Self> {
        for python in pythons() {
            let mut command = Command::new(&python);
            command.args(["-c", PROGRAM, place, name]).stdin(Stdio::piped()).stdout(Stdio::piped());
            match command.spawn() {
                Ok(mut child) => {
                    let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
                        bail!("Python has no standard input or output");
                    };
                    return Ok(Self { child, questions: Some(questions), answers });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => bail!("{}: {error}", python.display()),
            }
        }
        bail!(
            "no Python is here to run the function (looked for python3 beside niwaki and on the PATH); install Python and NumPy"
        )
    }

    /// What the function says of steps, in rows of one length.
    fn terms(&mut self, steps: &Steps<'_>) -> Result<Terms, String> {
        let lengths: Vec<usize> = steps.rows().map(|row| row.len()).collect();
        let length = lengths.first().copied().unwrap_or(0);
        if lengths.iter().any(|other| *other != length) {
            return Err("a function is asked about sequences of one length only".to_owned());
        }
        let mut question = Vec::with_capacity(16 + 16 * steps.len());
        for count in [lengths.len(), length] {
            question.extend((count as u64).to_le_bytes());
        }
        let ell = (0..steps.len()).map(|step| steps.ell(step));
        for value in ell.chain(steps.advantage.iter().copied()) {
            question.extend(value.to_le_bytes());
        }
        let gone = |error: io::Error| format!("Python has ended ({error})");
        let to = self.questions.as_mut().ok_or("Python has ended")?;
        to.write_all(&question).and_then(|()| to.flush()).map_err(gone)?;
        let [mut value, mut own, mut routed] = [(); 3].map(|()| vec![0.0; steps.len()]);
        self.answer(&mut [&mut value, &mut own, &mut routed])?;
        Ok(Terms { value, own, routed, factor: vec![1.0; steps.len()] })
    }

    /// Reads an answer into arrays, or the fault that came in its place.
    fn answer(&mut self, arrays: &mut [&mut Vec<f64>]) -> Result<(), String> {
        let mut head = [0; 8];
        // What Python said before it ended went past us, to the terminal.
        self.answers.read_exact(&mut head).map_err(|_| "Python ended before it answered".to_owned())?;
        let mut fault = Vec::new();
        let read = (&mut self.answers).take(u64::from_le_bytes(head)).read_to_end(&mut fault);
        read.map_err(|error| error.to_string())?;
        if !fault.is_empty() {
            return Err(String::from_utf8_lossy(&fault).into_owned());
        }
        for array in arrays {
            let mut bytes = vec![0; 8 * array.len()];
            self.answers.read_exact(&mut bytes).map_err(|error| error.to_string())?;
            for (value, bytes) in array.iter_mut().zip(bytes.chunks_exact(8)) {
                *value = bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
            }
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.questions = None;
        _ = self.child.wait();
    }
}

/// Pythons to try: that of the wheel which this program came in, then those on the PATH.
fn pythons() -> Vec<PathBuf> {
    let names = if cfg!(windows) { ["python.exe", "py.exe"] } else { ["python3", "python"] };
    let here = std::env::current_exe().ok();
    let beside = here.as_deref().and_then(Path::parent).into_iter().map(|folder| folder.join(names[0]));
    beside.filter(|path| path.is_file()).chain(names.map(PathBuf::from)).collect()
}
