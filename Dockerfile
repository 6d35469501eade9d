# Two stages on one base: the second has neither a compiler nor pip's cache.
#
#   BASE       any image with Python >= 3.11 and its venv module. Pin it by digest in production:
#              --build-arg BASE=python:3.13-slim@sha256:...
#   EXTRAS     of the package: "[otel]", or "[shop]" for the handlers that come along
#   PIP_ARGS   for pip install, where packages come from a mirror or a folder of wheels
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ARG EXTRAS=""
ARG PIP_ARGS=""
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY daemon daemon
COPY handlers handlers
COPY config config
COPY migrations migrations
# Byte code is compiled here: the root of a running container is read-only.
RUN python -m venv /opt/outboxd \
 && /opt/outboxd/bin/python -m pip install --no-cache-dir --constraint constraints.txt ${PIP_ARGS} ".${EXTRAS}" \
 && /opt/outboxd/bin/python -m pip uninstall --yes --quiet pip setuptools

FROM ${BASE}
ENV PATH=/opt/outboxd/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OUTBOXD_CONFIG=/etc/outboxd/outboxd.toml
COPY --from=build /opt/outboxd /opt/outboxd
# Numeric, so that a platform can see that it is not root.
USER 10001:10001
WORKDIR /etc/outboxd
STOPSIGNAL SIGTERM
EXPOSE 9464
# For docker and compose; ECS ignores it and has its own in the task definition.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["outboxd", "healthcheck"]
# The exec form: a shell would swallow SIGTERM.
ENTRYPOINT ["outboxd"]
CMD ["run"]
