package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// run checks the configs. Its error holds everything that is wrong.
func (o *validateOptions) run(ctx context.Context) error {
	config, warnings, err := o.check(ctx)
	var findings *indexers.ConfigError
	if err != nil && !errors.As(err, &findings) {
		return err
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
func (o *validateOptions) check(ctx context.Context) (*indexers.Config, []indexers.Diagnostic, error) {
	config, err := indexers.Load(o.configs...)
	if err != nil {
		return nil, nil, err
	}
	known, err := o.definitions(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	warnings := config.Warnings
	if known != nil {
		check := config.Check
		if o.target != nil {
			check = config.CheckCluster
		}
		more, wrong := check(known)
		warnings, err = slices.Concat(warnings, more), wrong
	}
	return config, warnings, err
}

// definitions gets what the paths are compared with; nil when they are not to be compared.
func (o *validateOptions) definitions(ctx context.Context, config *indexers.Config) ([]*crd.Definition, error) {
	switch {
	case len(o.crds) > 0:
		return session.DefinitionsFromFiles(ctx, o.crds, o.In)
	case o.target == nil:
		return nil, nil
	}
	ctx, cancel := o.target.Limit(ctx)
	defer cancel()
	client, err := dynamicinformer.NewClient(o.target.Config, nil)
	if err != nil {
		return nil, err
	}
	known, err := session.DefinitionsFromCluster(ctx, client, func(group string) bool {
		return slices.ContainsFunc(config.Resources, func(r *indexers.Resource) bool {
			match, err := path.Match(r.Match.Group, group)
			return match || err != nil
		})
	})
	if err != nil {
		return nil, o.target.Explain(ctx, err)
	}
	if known == nil {
		known = []*crd.Definition{} // there are none to be found, which Check reports
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
