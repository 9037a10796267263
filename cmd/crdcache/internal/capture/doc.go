// Package capture reads types from an API server page by page, as they are at one resource version, and saves
// them in snapshots.
package capture
