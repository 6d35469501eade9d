# Two stages on one base: the second has neither pip's cache nor a compiler.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY daemon daemon
COPY handlers handlers
COPY config config
COPY migrations migrations
RUN python -m venv /opt/outboxd \
 && /opt/outboxd/bin/python -m pip install --no-cache-dir --constraint constraints.txt .

FROM python:${PYTHON}-slim
ENV PATH=/opt/outboxd/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OUTBOXD_CONFIG=/etc/outboxd/outboxd.toml
COPY --from=build /opt/outboxd /opt/outboxd
# Numeric, so that a platform can see that it is not root.
USER 10001:10001
STOPSIGNAL SIGTERM
EXPOSE 9464
# For docker and compose; ECS ignores it and has its own in the task definition.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["outboxd", "healthcheck"]
# The exec form: a shell would swallow SIGTERM.
ENTRYPOINT ["outboxd"]
CMD ["run"]
