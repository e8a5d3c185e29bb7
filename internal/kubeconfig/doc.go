// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig takes out of a tenant's kubeconfig the little that is needed
// to reach one cluster, and nothing else.
//
// A kubeconfig is a program as much as it is data: it can name commands to run,
// files to read, proxies to pass through and people to pretend to be. The usual
// library does what it says, on the machine that reads it. Here it is only ever
// parsed, by code that knows no files and no commands:
//
//	YAML ─▶ plain maps ─▶ cluster whose server is apiURL ─▶ context ─▶ user
//	                                                                     │
//	            Access: server, CA data, TLS name, token, certificate ◀──┘
//
// The cluster is the one whose server is the environment's apiURL, compared as
// URLs are (case of the host, default port, trailing slash). The context is the
// current one if it is for that cluster, else the first by name that is.
//
// # What is rejected, and where
//
// In the cluster and the user that were chosen, every field that is not taken is
// rejected with its path: a tenant whose user has both a token and exec would
// otherwise learn only by chance which of them was used. Clusters and users that
// were not chosen are not looked into: an everyday kubeconfig has a dozen of
// them, half with exec, and nothing of them is carried on. Fields without a value
// (false, "", [], {}) count as absent.
//
//   - exec, auth-provider: commands. tokenFile, certificate-authority,
//     client-certificate, client-key: files. None is run or read.
//   - proxy-url: the proxy would connect in our place, past internal/tenantnet.
//   - as, as-uid, as-groups, as-user-extra: impersonation is the engine's means of
//     isolation, and not a tenant's to set.
//   - username, password: Kubernetes has had no basic authentication since 1.19,
//     so they are for a proxy in front of it, whose rules we do not know.
//   - insecure-skip-tls-verify: only spec.allowInsecureSkipTLSVerify of the
//     environment counts. Where that is set, the same word in the file adds
//     nothing and is accepted.
//   - whatever this package does not know: a later version may make a command of it.
//
// Taken or passed over: extensions and disable-compression change nothing for us;
// tls-server-name changes which name the certificate is checked for, not where we
// connect, and is taken if it is a name.
//
// YAML aliases are refused: they make gigabytes of a file that is within the size
// limit of 1 MiB, and no program writes them into a kubeconfig.
//
// No error contains a value of the file: parsers quote what they stumble over,
// and that may be a token. Their texts are dropped.
package kubeconfig
