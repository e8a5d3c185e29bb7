// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// keyRingFlags say where the key ring is.
type keyRingFlags struct {
	file   string
	secret string
}

func (f *keyRingFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.file, "key-ring", env("WEIR_KEY_RING", ""), "file with the key ring that seals credentials, of mode 0600 (WEIR_KEY_RING)")
	set.StringVar(&f.secret, "key-ring-secret", env("WEIR_KEY_RING_SECRET", ""), "NAMESPACE/NAME of the Secret with the key ring, instead of a file (WEIR_KEY_RING_SECRET)")
}

const setKeyRing = "set --key-ring FILE (or WEIR_KEY_RING) or --key-ring-secret NAMESPACE/NAME (or WEIR_KEY_RING_SECRET)"

// source finds the key ring. The cluster is asked for only where a Secret is named.
func (f keyRingFlags) source(cluster func() (*rest.Config, error)) (seal.Writable, error) {
	switch {
	case f.file == "" && f.secret == "":
		return nil, fmt.Errorf("no key ring given: %s; `weir keys create` makes one", setKeyRing)
	case f.file != "" && f.secret != "":
		return nil, fmt.Errorf("both a file (%s) and a Secret (%s) are given for the key ring: %s, not both", f.file, f.secret, setKeyRing)
	case f.file != "":
		return seal.NewFile(f.file), nil
	}
	namespace, name, ok := strings.Cut(f.secret, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--key-ring-secret %q: use NAMESPACE/NAME, such as weir/key-ring", f.secret)
	}
	config, err := cluster()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return seal.NewSecret(api, client.ObjectKey{Namespace: namespace, Name: name}), nil
}

// openSealer makes what the roles seal and open credentials with, and refuses where
// there is no key ring.
func openSealer(ctx context.Context, f keyRingFlags, config *rest.Config, keys seal.DataKeys) (*seal.Sealer, error) {
	source, err := f.source(func() (*rest.Config, error) { return config, nil })
	if err != nil {
		return nil, err
	}
	return seal.NewSealer(ctx, source, keys)
}

// ensureKeyRing makes a key ring in a file where there is none.
func ensureKeyRing(ctx context.Context, file string) error {
	source := seal.NewFile(file)
	if _, err := source.Load(ctx); !errors.Is(err, seal.ErrNoRing) {
		return err
	}
	ring, err := seal.NewRing()
	if err != nil {
		return err
	}
	return source.Create(ctx, ring)
}

// keysFlags are what the commands on keys have in common.
type keysFlags struct {
	ring       keyRingFlags
	kubeconfig string
	database   databaseFlags
	log        telemetry.LogOptions
}

func (f *keysFlags) addRing(set *pflag.FlagSet) {
	f.ring.add(set)
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster with the Secret; default: what kubectl would use")
}

func (f *keysFlags) addDatabase(set *pflag.FlagSet) {
	f.database.add(set)
	addLogFlags(set, &f.log, "text")
}

func (f *keysFlags) source() (seal.Writable, error) {
	return f.ring.source(func() (*rest.Config, error) { return kube.LoadConfig(f.kubeconfig) })
}

// withDatabase opens the database for a moment.
func (f *keysFlags) withDatabase(c *cobra.Command, work func(*database) error) error {
	log, err := telemetry.NewLogger(c.ErrOrStderr(), f.log)
	if err != nil {
		return err
	}
	db, err := openDatabase(c.Context(), f.database, log, nil)
	if err != nil {
		return err
	}
	return errors.Join(work(db), db.Close())
}

func newKeys() *cobra.Command {
	c := &cobra.Command{
		Use:     "keys",
		GroupID: "operate",
		Short:   "Make, show and rotate the keys that seal credentials in the database",
		Long: `Make, show and rotate the keys that seal credentials in the database.

Each tenant's credentials are encrypted with a data key of the tenant, which lies
in the database, encrypted by a key of the key ring. The key ring lies in a file of
mode 0600 or in a Kubernetes Secret (key ` + seal.SecretKey + `), never in the
database. Whoever has both can read the credentials; whoever loses the key ring has
lost them. Keep a backup of it, apart from those of the database, and give each
database a key ring of its own.`,
	}
	c.AddCommand(newKeysCreate(), newKeysShow(), newKeysRotate())
	return c
}

func newKeysCreate() *cobra.Command {
	var f keysFlags
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a key ring where there is none",
		Example: `  weir keys create --key-ring /etc/weir/key-ring.json
  weir keys create --key-ring-secret weir/key-ring`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := f.source()
			if err != nil {
				return err
			}
			ring, err := seal.NewRing()
			if err != nil {
				return err
			}
			if err := source.Create(c.Context(), ring); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Made a key ring in %s, with primary key %s.\nKeep a backup of it: without it, sealed credentials are lost.\n", source.Where(), ring.Primary())
			return nil
		},
	}
	f.addRing(c.Flags())
	return c
}

func newKeysShow() *cobra.Command {
	var f keysFlags
	c := &cobra.Command{
		Use:   "show",
		Short: "List the ids of the key ring's keys, and how many data keys each wraps",
		Long: `List the ids of the key ring's keys, and how many data keys each wraps.

Without a --database the data keys are not counted. No key is printed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := f.source()
			if err != nil {
				return err
			}
			ring, err := source.Load(c.Context())
			if err != nil {
				return err
			}
			if f.database.address == "" {
				return showKeys(c.OutOrStdout(), ring, nil)
			}
			return f.withDatabase(c, func(db *database) error {
				counts, err := db.CountDataKeys(c.Context())
				if err != nil {
					return err
				}
				return showKeys(c.OutOrStdout(), ring, counts)
			})
		},
	}
	f.addRing(c.Flags())
	f.addDatabase(c.Flags())
	return c
}

// showKeys prints the ring's keys, and those that the database needs and the ring
// does not have. Counts are nil where nobody counted.
func showKeys(out io.Writer, ring *seal.Ring, counts map[string]int) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "KEY\tROLE\tDATA KEYS")
	row := func(id, role string) {
		wraps := "not counted"
		if counts != nil {
			wraps = fmt.Sprint(counts[id])
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", id, role, wraps)
	}
	for _, id := range ring.KeyIDs() {
		if id == ring.Primary() {
			row(id, "primary")
		} else {
			row(id, "older")
		}
	}
	var missing []string
	for id := range counts {
		if !ring.Has(id) {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	for _, id := range missing {
		row(id, "MISSING")
	}
	if err := table.Flush(); err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("the database needs keys that the key ring does not have (%s): restore a key ring that has them; the credentials that they protect cannot be opened",
		strings.Join(missing, ", "))
}

func newKeysRotate() *cobra.Command {
	var f keysFlags
	var prune bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Give the key ring a new primary key, and wrap all data keys by it",
		Long: `Give the key ring a new primary key, and wrap all data keys by it.

The roles need not be stopped: they read the key ring again when they meet the new
key. (A SQLite database is for one process: stop that one first.) Where an earlier
rotation was interrupted, it is finished instead, and no further key is made.

With --prune, older keys that nothing needs any more leave the key ring. A backup
of the database from before needs the key ring from before.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := f.source()
			if err != nil {
				return err
			}
			return f.withDatabase(c, func(db *database) error {
				return rotateKeys(c.Context(), c.OutOrStdout(), source, db, prune)
			})
		},
	}
	f.addRing(c.Flags())
	f.addDatabase(c.Flags())
	c.Flags().BoolVar(&prune, "prune", false, "drop older keys that nothing needs any more")
	return c
}

func rotateKeys(ctx context.Context, out io.Writer, source seal.Writable, keys seal.DataKeys, prune bool) error {
	r, err := seal.Rotate(ctx, source, keys, seal.RotateOptions{
		Prune: prune,
		Progress: func(p seal.Progress) {
			fmt.Fprintf(out, "%d of %d data keys\n", p.Done, p.Total)
		},
	})
	if err != nil {
		return fmt.Errorf("the rotation is not finished, and nothing is lost; run it again once this is settled: %w", err)
	}
	if r.Resumed {
		fmt.Fprintf(out, "Finished an earlier rotation: wrapped %d data keys by primary key %s. Run it again for a new key.\n", r.Rewrapped, r.Primary)
	} else {
		fmt.Fprintf(out, "The primary key is now %s; wrapped %d data keys by it.\n", r.Primary, r.Rewrapped)
	}
	for _, id := range r.Dropped {
		fmt.Fprintf(out, "Dropped key %s.\n", id)
	}
	for _, id := range r.InUse {
		fmt.Fprintf(out, "Kept key %s: a data key was wrapped by it meanwhile. Run it again.\n", id)
	}
	return nil
}
