package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/pattern"
)

// run checks the configs. Its error holds everything that is wrong.
func (o *validateOptions) run(ctx context.Context) error {
	config, err := o.check(ctx)
	var findings *indexers.ConfigError
	if err != nil && !errors.As(err, &findings) {
		return err
	}
	var warnings []indexers.Diagnostic
	switch {
	case config != nil:
		warnings = config.Warnings
	case findings != nil:
		warnings = findings.Warnings
	}
	if o.json {
		return errors.Join(o.printJSON(findings, warnings), silentError(findings))
	}
	for _, w := range warnings {
		fmt.Fprintf(o.ErrOut, "warning: %s\n", w.Text())
	}
	if findings != nil {
		return err
	}
	return o.printSummary(config)
}

// check returns what the configs amount to, or nothing with an error.
func (o *validateOptions) check(ctx context.Context) (*indexers.Config, error) {
	sources := indexers.ReadSources(o.configs...)
	switch {
	case len(o.crds) > 0:
		return indexers.CheckSources(indexers.CheckOptions{Definitions: func([]string) ([]*crd.Definition, error) {
			return session.DefinitionsFromFiles(ctx, o.crds, o.In)
		}}, sources...)
	case o.target == nil:
		return indexers.Parse(sources...)
	}
	return indexers.CheckSources(indexers.CheckOptions{Cluster: true, Definitions: func(groups []string) ([]*crd.Definition, error) {
		return o.fromCluster(ctx, groups)
	}}, sources...)
}

// fromCluster gets the definitions of some groups, which may be patterns.
func (o *validateOptions) fromCluster(ctx context.Context, groups []string) ([]*crd.Definition, error) {
	ctx, cancel := o.target.Limit(ctx)
	defer cancel()
	client, err := dynamicinformer.NewClient(o.target.Config, nil)
	if err != nil {
		return nil, err
	}
	known, err := session.DefinitionsFromCluster(ctx, client, func(group string) bool {
		return slices.ContainsFunc(groups, func(text string) bool {
			return pattern.Match(text, group)
		})
	})
	if err != nil {
		return nil, o.target.Explain(ctx, err)
	}
	return known, nil
}

// printSummary says on stdout what was checked.
func (o *validateOptions) printSummary(config *indexers.Config) error {
	indexes := 0
	for _, r := range config.Resources {
		indexes += len(r.Indexes)
	}
	compared := "the paths were not compared with any schema, give --crds or --live for that"
	switch {
	case o.target != nil:
		compared = "compared with the cluster's types"
	case len(o.crds) > 0:
		compared = "compared with the types in files"
	}
	_, err := fmt.Fprintf(o.Out, "valid: %s, %s; %s\n",
		counted(len(config.Resources), "resource", "resources"), counted(indexes, "index", "indexes"), compared)
	return err
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// findingRecord is a finding as -o json gives it.
type findingRecord struct {
	Severity string        `json:"severity"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	Length   int           `json:"length"`
	Code     indexers.Code `json:"code"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint,omitempty"`
}

// printJSON writes all findings as an array.
func (o *validateOptions) printJSON(findings *indexers.ConfigError, warnings []indexers.Diagnostic) error {
	records := []findingRecord{}
	add := func(severity string, all []indexers.Diagnostic) {
		for _, d := range all {
			records = append(records, findingRecord{severity, d.File, d.Line, d.Column, d.Length, d.Code, d.Message, d.Hint})
		}
	}
	if findings != nil {
		add("error", findings.Diagnostics)
	}
	add("warning", warnings)
	encoder := json.NewEncoder(o.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(records)
}

// silentError makes the findings an error that says how many there are: stdout has told which.
func silentError(findings *indexers.ConfigError) error {
	if findings == nil {
		return nil
	}
	return &invalidError{findings: findings}
}

// invalidError stands for findings that have been printed.
type invalidError struct{ findings *indexers.ConfigError }

// Error says how many findings there are.
func (e *invalidError) Error() string {
	return "the config is invalid: " + counted(len(e.findings.Diagnostics), "error", "errors")
}

// Unwrap returns the findings, which decide the exit code.
func (e *invalidError) Unwrap() error { return e.findings }
