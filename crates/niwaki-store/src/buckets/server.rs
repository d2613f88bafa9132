//! A server of the loopback that speaks as much of S3 as a bucket needs, and fails as a test asks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The one bucket that there is.
pub(super) const BUCKET: &str = "bucket";

/// How a request fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// It does not.
    None,
    /// The server says so, and does nothing.
    Status(u16, &'static str),
    /// The connection is cut before anything is done.
    Cut,
    /// What was asked is done, and the answer is lost.
    Lost,
    /// The answer is late.
    Late,
}

/// Which of the requests fail, by their place.
type Faults = fn(usize) -> Fault;

#[derive(Clone, Debug)]
struct Object {
    bytes: Vec<u8>,
    mark: String,
    written: Duration,
}

#[derive(Default)]
struct Held {
    objects: Mutex<BTreeMap<String, Object>>,
    requests: AtomicUsize,
}

/// A server, for as long as the process lives.
pub(super) struct Server {
    port: u16,
    held: Arc<Held>,
}

impl Server {
    pub(super) fn start(faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, held, began) =
            (listener.local_addr().unwrap().port(), Arc::<Held>::default(), Instant::now());
        let shared = held.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, held) = (stream.unwrap(), shared.clone());
                // Who is cut off by a fault, or goes away, ends his own thread only.
                std::thread::spawn(move || serve(&stream, &held, faults, began));
            }
        });
        Self { port, held }
    }

    /// What an account of this server is.
    pub(super) fn account(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "here"),
            ("AWS_ACCESS_KEY_ID", "anybody"),
            ("AWS_SECRET_ACCESS_KEY", "nothing"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
    }

    /// The objects, by their keys.
    pub(super) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let objects = self.held.objects.lock().unwrap();
        objects.iter().map(|(key, object)| (key.clone(), object.bytes.clone())).collect()
    }

    /// How many requests came.
    pub(super) fn requests(&self) -> usize {
        self.held.requests.load(Ordering::Relaxed)
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, held: &Held, faults: Faults, began: Instant) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split_whitespace().map(ToOwned::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let fault = faults(held.requests.fetch_add(1, Ordering::Relaxed));
        let answer = match fault {
            Fault::Cut => return None,
            Fault::Status(status, code) => Answer::error(status, code),
            Fault::None | Fault::Lost | Fault::Late => held.answer(&method, &target, &headers, body, began),
        };
        match fault {
            Fault::Lost => return None,
            Fault::Late => std::thread::sleep(Duration::from_millis(300)),
            _ => {}
        }
        (&*stream).write_all(&answer.text(method == "HEAD")).ok()?;
    }
}

struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Answer {
    fn error(status: u16, code: &str) -> Self {
        let body =
            format!("<Error><Code>{code}</Code><Message>as the test\nasks</Message></Error>").into_bytes();
        Self { status, headers: String::new(), body }
    }

    fn text(&self, head: bool) -> Vec<u8> {
        let Self { status, headers, body } = self;
        let mut text =
            format!("HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
        text.extend(if head { &[] } else { body.as_slice() });
        text
    }
}

impl Held {
    fn answer(
        &self,
        method: &str,
        target: &str,
        headers: &BTreeMap<String, String>,
        bytes: Vec<u8>,
        began: Instant,
    ) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(key) = path.strip_prefix(&format!("/{BUCKET}")) else {
            return Answer::error(404, "NoSuchBucket");
        };
        let key = decoded(key.trim_start_matches('/'));
        let mut objects = self.objects.lock().unwrap();
        match method {
            "PUT" => {
                if headers.contains_key("if-none-match") && objects.contains_key(&key) {
                    return Answer::error(412, "PreconditionFailed");
                }
                let mark = headers.get("x-amz-meta-niwaki").cloned().unwrap_or_default();
                objects.insert(key, Object { bytes, mark, written: began.elapsed() });
                Answer { status: 200, headers: "etag: \"one\"\r\n".to_owned(), body: Vec::new() }
            }
            _ if key.is_empty() => {
                Answer { status: 200, headers: String::new(), body: listed(&objects, query) }
            }
            _ => match objects.get(&key) {
                None => Answer::error(404, "NoSuchKey"),
                Some(Object { bytes, mark, written }) => {
                    let clock = clock(*written);
                    let headers = format!(
                        "etag: \"one\"\r\nlast-modified: Thu, 01 Jan 2026 {clock} GMT\r\nx-amz-meta-niwaki: {mark}\r\n"
                    );
                    Answer { status: 200, headers, body: bytes.clone() }
                }
            },
        }
    }
}

/// The objects right under a prefix, as a listing says them.
fn listed(objects: &BTreeMap<String, Object>, query: &str) -> Vec<u8> {
    let prefix =
        query.split('&').find_map(|pair| pair.strip_prefix("prefix=")).map_or_else(String::new, decoded);
    let mut text = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
    for (key, object) in objects {
        if key.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/')) {
            let (size, clock) = (object.bytes.len(), clock(object.written));
            // A string is always written.
            let _ = write!(
                text,
                "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>2026-01-01T{clock}.000Z</LastModified></Contents>"
            );
        }
    }
    (text + "</ListBucketResult>").into_bytes()
}

/// The time of the day, on a server that began at midnight.
fn clock(since: Duration) -> String {
    let seconds = since.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}
