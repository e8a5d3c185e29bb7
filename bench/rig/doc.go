// SPDX-License-Identifier: Apache-2.0

// Package rig starts what the benchmarks measure, and is the measuring gear.
//
//	 bench process                                  processes of their own
//	┌────────────────────────────┐                 ┌──────────────────────┐
//	│ scenario ── writes CRs ────┼────────────────▶│ localkube, durable   │
//	│    ▲                       │                 └──────▲────────▲──────┘
//	│    │ sightings             │                        │        │
//	│  Board ◀── watches ◀───────┼──── deliveries ────────┘  weir backend
//	│              │             │                           weir agent
//	│  Engine ◀────┘ removes the │                              │
//	│         engine's finalizer │                 ┌────────────▼─────────┐
//	│                            │                 │ PostgreSQL, durable  │
//	└────────────────────────────┘                 └──────────────────────┘
//
// # Sightings
//
// A latency ends when something is seen in a watch. The name of an Application
// derives from a UID that exists only after the create request has been answered,
// and its sighting may in principle come before that answer. So what is awaited is
// named by what the scenario chose itself, such as the path in the spec, and the
// scenario registers it on the Board before it sends anything. A sighting carries the
// time at which the watch gave the event; the scenario may pick it up later.
//
// # Counting from outside
//
// SQL statements are counted by PostgreSQL (pg_stat_statements, for the
// service's role and database only), requests by the API server
// (apiserver_request_total, less those of this process, which counts its own),
// processor time and memory by the kernel. No role is asked what it did, except
// for goroutines and for how its time was spent, which nobody else knows.
package rig
