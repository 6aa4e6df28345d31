# The worker as an image: locked wheels and the package, nothing to compile, no root.

# bookworm: the speech engine's wheel needs glibc 2.34 or newer
FROM python:3.12.13-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/clipboss
ENV PATH=/opt/clipboss/bin:$PATH
WORKDIR /src
# Dependencies first: they change less often than the code, and stay cached.
COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install --require-hashes --only-binary :all: -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY migrations migrations
COPY worker worker
RUN pip install --no-deps .


FROM python:3.12.13-slim-bookworm
# tini is PID 1: it hands SIGTERM on to Python, which then drains, and reaps orphans that ffmpeg may leave behind.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /scratch --shell /usr/sbin/nologin clipboss \
    && install --directory --owner=clipboss --group=clipboss --mode=0750 /scratch
COPY --from=build /opt/clipboss /opt/clipboss
ENV PATH=/opt/clipboss/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SCRATCH_DIR=/scratch \
    LOG_FORMAT=json \
    METRICS_PORT=9090
# Not writable for the worker: `python -m` looks for modules here first.
WORKDIR /opt/clipboss
VOLUME /scratch
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
# Cheap on purpose: it asks the running process, and starts nothing that touches the database.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:%s/healthz' % os.environ['METRICS_PORT'], timeout=4)"]
ENTRYPOINT ["/usr/bin/tini", "--", "python", "-m", "worker"]
