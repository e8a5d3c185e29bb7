// SPDX-License-Identifier: Apache-2.0

// Package telemetry is how an operator sees Weir work: structured logs, the
// latency of every hop and queue as Prometheus metrics, and probes that say which
// dependency is away.
package telemetry
