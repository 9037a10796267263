package follow

import (
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

// Options say what is followed and how it is printed.
type Options struct {
	*session.Reader
	Style print.Style
	// Query is what events are relative to: an object that it no longer holds for is deleted.
	Query query.Query
	// Events prints what happened to an object with each, and each type as soon as it is synced. Without it, objects
	// are printed as kubectl get --watch does, those that are there in the beginning once all types are synced.
	Events bool
	// ChangesOnly leaves out what is there in the beginning.
	ChangesOnly bool
	// Diff prints below the row of each changed object what changed; it needs a table.
	Diff bool
	// Color paints events and differences.
	Color bool
	// Timestamps tells with each event when it came, and Managers who made it. The latter needs objects that are cached
	// with their managed fields, which are printed only with KeepManagedFields.
	Timestamps, Managers, KeepManagedFields bool
	// Wait waits for types that do not exist yet, even if none does.
	Wait bool
}

// Check tells which options do not go together.
func (o Options) Check() error {
	switch {
	case o.Diff && !o.tables():
		return exit.Usagef("--diff goes with tables: leave out --output, or give wide")
	case (o.Timestamps || o.Managers) && !o.tables() && o.Style.Format.Name != print.JSON && o.Style.Format.Name != print.JSONLines && o.Style.Format.Name != print.YAML:
		return exit.Usagef("--timestamps and --managers go with tables, json, jsonl and yaml")
	case o.Style.Format.Name == print.CSV:
		return exit.Usagef("changes cannot be printed as csv: use jsonl or custom-columns")
	}
	return nil
}

// tables reports whether rows are printed.
func (o Options) tables() bool { return o.Style.Format.IsTable() }
