# One image for every role. What runs is said by the command: serve sequencer, serve http, ...
FROM python:3.11-slim AS build
WORKDIR /build
COPY requirements.lock .
RUN python -m venv /opt/gpuledger \
    && /opt/gpuledger/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY domain domain
COPY projections projections
COPY solvers solvers
COPY schemas schemas
COPY connectors connectors
RUN /opt/gpuledger/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim
# The roles share the data folder, and are one user: it holds their socket and their secrets.
RUN useradd --uid 10001 --create-home gpuledger \
    && install --directory --owner=gpuledger --mode=0700 /data /var/cache/gpuledger
COPY --from=build /opt/gpuledger /opt/gpuledger
ENV PATH=/opt/gpuledger/bin:$PATH \
    GPULEDGER_DATA_DIR=/data \
    NUMBA_CACHE_DIR=/var/cache/gpuledger \
    PYTHONUNBUFFERED=1
USER gpuledger
VOLUME /data
ENTRYPOINT ["gpuledger"]
CMD ["--help"]
