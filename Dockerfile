# The command in a slim image: `docker build -t niwaki .`, then `docker run --rm -v "$PWD:/work" niwaki advise dump.jsonl`.
# With `--build-arg FEATURES=cuda` it looks for a GPU at run time (`docker run --gpus all`).
FROM rust:1.90-slim-bookworm AS build
ARG FEATURES=""
ARG NIWAKI_COMMIT=""
WORKDIR /niwaki
COPY . .
RUN cargo build --release --locked --package niwaki --features "$FEATURES" && strip target/release/niwaki

FROM debian:bookworm-slim
COPY --from=build /niwaki/target/release/niwaki /usr/local/bin/niwaki
COPY LICENSE-MIT LICENSE-APACHE /usr/local/share/doc/niwaki/
WORKDIR /work
ENTRYPOINT ["niwaki"]
CMD ["--help"]
