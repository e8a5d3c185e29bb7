// SPDX-License-Identifier: Apache-2.0

// Command bench measures Weir on real parts and prints one table: each figure
// with its floor, its target, whether that was met, and what an earlier system of
// this kind needed. It writes the same to bench/results.json.
//
//	make bench                       everything, about ten minutes
//	go run ./bench --quick           smaller counts, to see that it works
//	go run ./bench --only latency    some scenarios; --help lists them
//
// It starts, in a folder of its own: the Kubernetes control plane of bin/localkube
// with an etcd that waits for its disk, a PostgreSQL that does so too, and
// `weir backend` and `weir agent` as processes of their own. In place of a GitOps
// engine there is only what lets deleted Applications go. See package rig.
//
// # Floor and ratio
//
// Latencies depend on the machine, mostly on how long its disk takes to make a
// write durable. So beside them, in the same run, the floor is measured: a bare
// client that makes the writes that cannot be avoided one after the other, and
// waits for each watch delivery that cannot be avoided. The two take turns in blocks,
// so that what disturbs the machine disturbs both; between blocks the roles come
// to rest, so that what is left of one does not slow the other.
//
//   - Floor of truth flowing down: one commit, an Operation written and delivered,
//     one read, an Application written and delivered.
//   - Floor of status flowing up: an Application's status written and delivered,
//     one commit, one read, a tenant resource's status written and delivered.
//
// # Figures
//
// latency. One tenant, known to the service, one deployment after the other.
// Create: from just before the create request is sent until the Application is seen
// in a watch. That contains the tenant's own request, which the floor does not;
// "from the answer" leaves it out. Update: from just before spec.source.path is
// patched until the Application is seen with the new path. Delete: from just before
// the delete request until the Application is seen to be gone, with the stand-in's
// removal of the engine's finalizer in between. SQL statements and API requests are
// all that both roles had PostgreSQL and the API server do for the creates, until
// everything was at rest again: also status writes, and the removal of the
// Operation. The BEGIN and the COMMIT of a decision are part of one pipeline, and
// PostgreSQL's statistics do not list them: two more for each decision. Watches are not counted, they are opened once.
//
// status. From just before an Application's status (sync, health, five resources)
// is patched until the GitOpsDeployment is seen with it.
//
// throughput. 1,000 deployments in 50 namespaces by 32 writers: from the first
// create request until the last Application is seen. Processor time, statements and
// requests are taken when all is at rest again, memory then too.
//
// idle. The same 1,000 deployments, nothing happening: processor time of both
// roles, and every SQL statement, in one minute that begins once finished
// operations have been collected. Heartbeats are those that look at the change log
// or only at the connection. Goroutines are compared with the number before
// the 1,000 were created, with all connections already in use.
//
// fairness. A tenant creates a few deployments alone, which is its quiet latency.
// Then another tenant creates 500 at once, and a second later the first creates
// one more. Both tenants are new each time; the medians over all times are compared.
//
// stuck. A tenant deletes 25 deployments whose Applications stay, because nobody
// removes the engine's finalizer; every second deployment carries the tenant's own
// finalizer, so that it stays too. Another tenant's median latency is compared with
// its quiet one from just before.
//
// missed. The backend is killed, 20 deployments are deleted, the backend is started
// again: until the last of their Applications is gone, from the start of the
// process and from when it says that it is ready.
//
// A target that is missed is shown as missed and is no error. A scenario that
// cannot be measured is one.
package main
