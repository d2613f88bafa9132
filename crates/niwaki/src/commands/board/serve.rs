//! The board over HTTP: on the loopback address alone, read-only, two things to ask for.

use super::{Look, listed, page};
use crate::{output, terminal};
use anyhow::Context;
use niwaki_files::Digest;
use niwaki_study::board::board_data;
use niwaki_study::runs::{Comparison, Row};
use niwaki_train::reading::Reader;
use serde_json::json;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How often the folders are looked at; less often where looking takes long.
const EVERY: Duration = Duration::from_secs(1);
/// Of the time at most one part in so many is spent on looking.
const REST: u32 = 3;
/// The longest request that is read, and how long it may take.
const LONGEST: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(5);
/// Requests that are answered at the same time.
const MOST: usize = 16;

/// What the page may do: show itself, and ask for what is new.
const FENCE: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What is handed out, and the name of its state.
struct Board {
    page: String,
    data: String,
    tag: String,
}

impl Board {
    fn of(comparison: &Comparison) -> anyhow::Result<Self> {
        let mut data = board_data(comparison)?;
        data["live"] = json!(true);
        let data = data.to_string();
        let tag = format!("\"{}\"", Digest::of(&data));
        Ok(Self { page: page(comparison, output::made(), true)?, data, tag })
    }

    /// The same page, and that its folders cannot be read.
    fn stale(&self, reason: &str) -> Self {
        let data = json!({ "stale": format!("Not read since: {reason}") }).to_string();
        let tag = format!("\"{}\"", Digest::of(&data));
        Self { page: self.page.clone(), data, tag }
    }
}

/// Serves until it is interrupted.
pub(super) fn serve(mut look: Look, first: Comparison, port: u16) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("cannot serve on port {port}; leave --port out for a free one"))?;
    let address = listener.local_addr().context("the port has no address")?;
    let board = Arc::new(RwLock::new(Arc::new(Board::of(&first)?)));
    terminal::say(&format!("board of {}: http://{address}/ (Ctrl-C ends it)", listed(&look.places)));
    let shared = board.clone();
    std::thread::spawn(move || answer_all(&listener, &shared));
    let mut failed = false;
    loop {
        std::thread::sleep(EVERY);
        let began = Instant::now();
        // What stands there again after an error is new, whatever it is.
        let next = look.compare(failed).and_then(|found| found.as_ref().map(Board::of).transpose());
        failed = next.is_err();
        if failed {
            look.reader = Reader::new(Row::of);
        }
        let next = next.unwrap_or_else(|error| Some(held(&board).stale(&format!("{error:#}"))));
        if let Some(next) = next {
            *board.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        }
        std::thread::sleep(began.elapsed() * REST);
    }
}

fn held(board: &RwLock<Arc<Board>>) -> Arc<Board> {
    board.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn answer_all(listener: &TcpListener, board: &Arc<RwLock<Arc<Board>>>) {
    let busy = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if busy.fetch_add(1, Ordering::SeqCst) >= MOST {
            busy.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (busy, board) = (busy.clone(), board.clone());
        std::thread::spawn(move || {
            // Who went away needs no answer.
            let _ = answer(stream, &board);
            busy.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Answers one request and closes.
fn answer(mut stream: TcpStream, board: &RwLock<Arc<Board>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = request(&mut stream)?;
    let board = held(board);
    let Response { status, kind, body, tag } = respond(&request, &board);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\nETag: {tag}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: {FENCE}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The head of a request.
fn request(stream: &mut impl Read) -> io::Result<String> {
    let (mut bytes, mut part) = (Vec::new(), [0; 1024]);
    let began = Instant::now();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut part)?;
        if read == 0 || bytes.len() + read > LONGEST || began.elapsed() > PATIENCE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&part[..read]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

struct Response<'a> {
    status: &'static str,
    kind: &'static str,
    body: &'a str,
    tag: &'a str,
}

fn respond<'a>(request: &str, board: &'a Board) -> Response<'a> {
    let say = |status, body| Response { status, kind: "text/plain", body, tag: "\"\"" };
    let mut lines = request.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let header = |name: &str| {
        let mut found = request.lines().skip(1).filter_map(|line| line.split_once(':'));
        found.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    // A page from elsewhere that had its name lead here asks under that name; the port is another one where it is forwarded.
    let name = header("host").map(|host| match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    });
    if !matches!(name, Some("127.0.0.1" | "localhost")) {
        return say("403 Forbidden", "this board is for this machine alone\n");
    }
    if method != "GET" {
        return say("405 Method Not Allowed", "this board can only be read\n");
    }
    match path {
        "/" => Response { status: "200 OK", kind: "text/html", body: &board.page, tag: &board.tag },
        "/data" if header("if-none-match") == Some(board.tag.as_str()) => {
            Response { status: "304 Not Modified", kind: "application/json", body: "", tag: &board.tag }
        }
        "/data" => {
            Response { status: "200 OK", kind: "application/json", body: &board.data, tag: &board.tag }
        }
        _ => say("404 Not Found", "there is / and /data\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_reads_two_things() {
        let board = Board { page: "page".to_owned(), data: "data".to_owned(), tag: "\"1\"".to_owned() };
        let ask = |text: &str| {
            let Response { status, body, .. } = respond(&text.replace('|', "\r\n"), &board);
            (status[..3].to_owned(), body.to_owned())
        };
        let status = |text: &str| ask(text).0;
        assert_eq!(ask("GET / HTTP/1.1|Host: 127.0.0.1:80||"), ("200".to_owned(), "page".to_owned()));
        assert_eq!(ask("GET /data HTTP/1.1|host: localhost:80||"), ("200".to_owned(), "data".to_owned()));
        assert_eq!(status("GET /data HTTP/1.1|Host: localhost:80|If-None-Match: \"1\"||"), "304");
        assert_eq!(status("GET /data HTTP/1.1|Host: localhost:80|If-None-Match: \"2\"||"), "200");
        assert_eq!(status("GET / HTTP/1.1|Host: elsewhere.example:80||"), "403");
        assert_eq!(status("GET / HTTP/1.1|Host: localhost.example||"), "403");
        // Behind a forwarded port, and on the port that browsers leave out.
        assert_eq!(status("GET / HTTP/1.1|Host: localhost:9000||"), "200");
        assert_eq!(status("GET / HTTP/1.1|Host: 127.0.0.1||"), "200");
        assert_eq!(status("GET / HTTP/1.1||"), "403");
        assert_eq!(status("POST / HTTP/1.1|Host: localhost:80||"), "405");
        assert_eq!(status("GET /../etc/passwd HTTP/1.1|Host: localhost:80||"), "404");
    }

    #[test]
    fn a_request_that_does_not_end_is_left() {
        assert!(request(&mut &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]).is_ok());
        assert!(request(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err());
        assert!(request(&mut &vec![b'a'; 20_000][..]).is_err());
    }
}
