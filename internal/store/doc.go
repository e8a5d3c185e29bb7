// SPDX-License-Identifier: Apache-2.0

// Package store is the relational database between the tenants' CRs and the
// engines: the only package of Weir that contains SQL.
//
// # One text, two databases
//
// Every statement is written once, in the SQL that PostgreSQL and SQLite share
// ($1…$N, ON CONFLICT, RETURNING). What differs lives in the sub-packages
// postgres and sqlite: how to connect, migrate, classify an error, and learn
// that something changed. storetest holds both to the same behaviour.
//
// # One decision, one transaction
//
// A step reads what it needs in one statement, decides without the database,
// and hands the whole decision to Apply, which writes it in one transaction.
// Between the read and the write somebody else may have decided too; then a
// constraint, a foreign key or a version refuses the write and nothing of it
// stays. The caller gets domain.ErrConflict or domain.ErrMissingParent, reads
// again and decides again. No lock is held while a decision is made.
//
// # Tenants
//
// Every row a tenant owns carries the tenant, and foreign keys between such rows
// are composite with it, so no statement, however wrong, can make one tenant's
// row refer to another's.
//
// # Changes
//
// Triggers append to change_log whenever an operation or an application state
// changes, in the same transaction, whoever wrote it. Package notify turns that
// log into notifications; ChangesSince is how it catches up.
package store
