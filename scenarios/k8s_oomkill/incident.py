"""What happened: the lines that stand in the documents of every size. Times are HH:MM:SS of the incident's day."""

from __future__ import annotations

Line = tuple[str, str]

APP_LOG: tuple[Line, ...] = (
    ("09:12:33", "WARN redis used=4.0/4.0Gi evicted=205/s"),
    ("13:05:04", "INFO reconcile start cutoff=12:00"),
    ("13:05:49", "INFO reconcile done rows=83712 heap=431Mi"),
    ("14:02:20", "INFO boot version=v2.4.2 pool.max=50"),
    ("14:05:03", "INFO reconcile start cutoff=13:00"),
    ("14:05:38", "INFO heap=1460Mi top=InvoiceRecord[] n=84000"),
    ("14:07:10", "WARN gc pause=2.9s heap=1905Mi"),
    ("14:07:52", "ERROR pool timeout: 50/50 in use, 31 waiting"),
    ("14:08:30", "ERROR pool timeout: 50/50 in use, 77 waiting"),
    ("14:08:36", "ERROR SLA breach p99=2870ms"),
    ("14:08:41", "WARN redis used=4.0/4.0Gi evicted=212/s"),
)

EVENTS: tuple[Line, ...] = (
    ("12:40:11", "Normal Updated configmap/payment-config DB_POOL_MAX 80->50"),
    ("13:31:26", "Warning CPUThrottlingHigh pod/report-gen-5d9c7 node-7"),
    ("14:02:06", "Normal ScalingReplicaSet deployment/payment-svc"),
    ("14:08:55", "Warning Unhealthy pod/payment-svc-7b6f4 readiness timeout"),
    ("14:09:40", "Warning OOMKilled pod/payment-svc-7b6f4 exit=137 limit=2Gi"),
    ("14:09:52", "Warning BackOff pod/payment-svc-7b6f4 restarting"),
)

METRICS_HEADER = "time rps heap_mi pool p99_ms redis_pct node7_cpu"
METRICS: tuple[Line, ...] = (
    ("12:30", "408 392 12/80 181 100 58"),
    ("13:05", "415 431 11/50 184 100 61"),
    ("13:31", "402 398 10/50 190 100 94"),
    ("14:02", "411 389 11/50 183 100 93"),
    ("14:06", "409 1512 14/50 246 100 92"),
    ("14:07", "410 1893 18/50 411 100 92"),
    ("14:08", "405 1938 50/50 2870 100 93"),
)

REVISIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("40 payment-svc:v2.4.0", "03-04 09:30", ("refund webhook",)),
    ("41 payment-svc:v2.4.1", "03-10 09:30", ("redis session TTL 10m->60m",)),
    (
        "42 payment-svc:v2.4.2",
        "03-12 14:02",
        ("invoice rounding fix", "HTTP retries 2->3", "reconcile: streaming cursor replaced by single fetch"),
    ),
)
"""(number and image, rolled out at, its changelog); the pods run the last one."""

CHORES = (
    "card-gateway client 3.2->3.3",
    "reconcile: count rows per run",
    "connection pool: validate on borrow",
    "base image update",
    "refund limits by country",
    "redis client pipelining",
    "log ids on refunds",
    "invoice PDF fonts",
    "health check path",
    "JSON logs off in staging",
)
"""Changelog lines of older releases."""

MANIFEST = (
    "--- live manifest, excerpt",
    "kind: Deployment",
    "metadata: {name: payment-svc, namespace: payments, annotations: {deployment.kubernetes.io/revision: '42'}}",
    "spec:",
    "  replicas: 3",
    "  strategy: {type: RollingUpdate, maxUnavailable: 1}",
    "  template:",
    "    spec:",
    "      nodeSelector: {pool: general}",
    "      containers:",
    "      - name: payment-svc",
    "        image: payment-svc:v2.4.2",
    "        envFrom: [{configMapRef: {name: payment-config}}]",
    "        resources:",
    "          requests: {cpu: 500m, memory: 1Gi}",
    "          limits: {memory: 2Gi}",
    "        readinessProbe: {httpGet: {path: /ready, port: 8080}, timeoutSeconds: 3}",
    "--- other deployments in payments: ledger-svc v1.9.3 (03-12 11:15), report-gen v0.8.2 (02-27)",
)
