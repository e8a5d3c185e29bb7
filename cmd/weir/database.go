// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/store/sqlite"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// database is an open database and the notifier that belongs to its kind.
type database struct {
	store.Store
	notifier notify.Notifier
}

const setDatabase = "set --database (or WEIR_DATABASE) to postgres://user:password@host:port/name"

// openDatabase opens and migrates the database. One that does not answer may
// come up a moment later, so it is tried again for a while; one that answers and
// refuses will not change its mind.
func openDatabase(ctx context.Context, f databaseFlags, log *slog.Logger, metrics prometheus.Registerer) (*database, error) {
	const pause = 2 * time.Second
	deadline := time.Now().Add(f.patience)
	for {
		db, err := tryDatabase(ctx, f.address, log, metrics)
		if err == nil || !errors.Is(err, domain.ErrUnavailable) {
			return db, err
		}
		if time.Now().Add(pause).After(deadline) {
			return nil, fmt.Errorf("the database does not answer: %w; start it, or %s", err, setDatabase)
		}
		log.WarnContext(ctx, "the database does not answer yet, trying again", "error", err, "for_another", time.Until(deadline).Round(time.Second))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func tryDatabase(ctx context.Context, address string, log *slog.Logger, metrics prometheus.Registerer) (*database, error) {
	o := notify.Options{Log: log, Metrics: metrics}
	if file, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		s, err := sqlite.OpenAndMigrate(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("open SQLite database %s: %w", file, err)
		}
		return &database{s, notify.NewInProcess(s, s.OnCommit, o)}, nil
	}
	switch {
	case address == "":
		return nil, fmt.Errorf("no database given: %s", setDatabase)
	case !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://"):
		// Not quoted: it may be a password typed into the wrong place.
		return nil, fmt.Errorf("--database begins with neither postgres:// nor sqlite: %s", setDatabase)
	}
	s, err := postgres.OpenAndMigrate(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL database: %w", err)
	}
	return &database{s, notify.NewListening(notify.From(s.Listen), s, o)}, nil
}

func newMigrate() *cobra.Command {
	var f databaseFlags
	var logs telemetry.LogOptions
	c := &cobra.Command{
		Use:     "migrate",
		GroupID: "operate",
		Short:   "Bring the database's schema up to date, and exit",
		Long: `Bring the database's schema up to date, and exit.

The roles do the same when they start; this is for those who want to see it
happen before they do. Two at once wait for each other.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := telemetry.NewLogger(c.ErrOrStderr(), logs)
			if err != nil {
				return err
			}
			db, err := openDatabase(c.Context(), f, log, nil)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "The database's schema is up to date.")
			return db.Close()
		},
	}
	f.add(c.Flags())
	addLogFlags(c.Flags(), &logs, "text")
	return c
}
