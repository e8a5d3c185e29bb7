// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weir-gitops/weir/internal/store/postgres"
)

// templateName is the database that has the current schema and is cloned.
const templateName = "weir_template"

// CreateDatabase makes a database with the current schema and gives its
// address. The schema is migrated once and cloned from then on.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	if err := s.needTemplate(ctx); err != nil {
		return "", err
	}
	return s.createDatabase(ctx, name, templateName)
}

// CreateEmptyDatabase makes a database without a schema and gives its address.
func (s *Server) CreateEmptyDatabase(ctx context.Context, name string) (string, error) {
	return s.createDatabase(ctx, name, "template1")
}

// needTemplate makes the template once; whoever needs it meanwhile waits.
func (s *Server) needTemplate(ctx context.Context) error {
	s.templateMu.Lock()
	defer s.templateMu.Unlock()
	if s.template {
		return nil
	}
	if err := s.makeTemplate(ctx); err != nil {
		return err
	}
	s.template = true
	return nil
}

func (s *Server) makeTemplate(ctx context.Context) error {
	dsn, err := s.createDatabase(ctx, templateName, "template1")
	if err != nil {
		return err
	}
	migrated, err := postgres.OpenAndMigrate(ctx, dsn)
	if err != nil {
		return fmt.Errorf("migrate the template database: %w", err)
	}
	return migrated.Close()
}

func (s *Server) createDatabase(ctx context.Context, name, template string) (string, error) {
	err := s.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE %s",
			pgx.Identifier{name}.Sanitize(), service, pgx.Identifier{template}.Sanitize()))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return s.DSN(name), nil
}

// DropDatabase removes a database and cuts who is still connected to it.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", pgx.Identifier{name}.Sanitize()))
		return err
	})
}

// CutConnections ends every connection to a database but those of the
// administrator, as a network fault or a failover would, and says how many.
func (s *Server) CutConnections(ctx context.Context, database string) (int, error) {
	var cut int
	err := s.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1 AND usename = $2`,
			database, service).Scan(&cut)
	})
	return cut, err
}

func (s *Server) asAdmin(ctx context.Context, database string, work func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, s.address(admin, database, s.currentPort()))
	if err != nil {
		return fmt.Errorf("connect as administrator: %w", err)
	}
	defer func() {
		if closing := conn.Close(ctx); err == nil {
			err = closing
		}
	}()
	return work(conn)
}

// Statement is how often the service's role ran a statement.
type Statement struct {
	Text  string
	Calls int64
}

// Statements lists what the service's role ran in a database since the start or
// the last ResetStatements, the most frequent first. What triggers run inside the
// server is not counted, BEGIN and COMMIT are. It needs Options.CountStatements.
func (s *Server) Statements(ctx context.Context, database string) ([]Statement, error) {
	var all []Statement
	err := s.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `
SELECT s.query, s.calls FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid JOIN pg_roles r ON r.oid = s.userid
WHERE s.toplevel AND d.datname = $1 AND r.rolname = $2
ORDER BY s.calls DESC, s.query`, database, service)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
		return err
	})
	return all, err
}

// ResetStatements forgets what was counted.
func (s *Server) ResetStatements(ctx context.Context) error {
	return s.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_stat_statements_reset()")
		return err
	})
}
