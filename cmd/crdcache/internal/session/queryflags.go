package session

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// QueryFlags are the flags for the conditions of a query.
type QueryFlags struct {
	indexConditions []string
	where           []string
	whereCEL        []string
}

// Add adds the flags to cmd, with shell completion of index names.
func (f *QueryFlags) Add(cmd *cobra.Command, configs *ConfigFlags) {
	set := cmd.Flags()
	// Conditions can contain commas, so these flags do not split their values.
	set.StringArrayVar(&f.indexConditions, "index", nil, "")
	set.StringArrayVar(&f.where, "where", nil, "")
	set.StringArrayVar(&f.whereCEL, "where-cel", nil, "")
	configs.CompleteIndexes(cmd, "index", "=", nil)
}

func (f *QueryFlags) HasConditions() bool {
	return len(f.indexConditions)+len(f.where)+len(f.whereCEL) > 0
}

// Query combines the conditions. Without conditions it returns query.All().
func (f *QueryFlags) Query() (query.Query, error) {
	var conditions []query.Query
	for _, text := range f.indexConditions {
		q, err := query.Parse(text)
		if queryErr, ok := errors.AsType[*query.Error](err); ok {
			return nil, UsageLines(fmt.Sprintf("--index: %v\n%s", queryErr, queryErr.Caret()))
		}
		if err != nil {
			return nil, Usagef("--index: %v", err)
		}
		conditions = append(conditions, q)
	}
	conditions = append(conditions, naming.Map(f.where, query.Where)...)
	conditions = append(conditions, naming.Map(f.whereCEL, query.WhereCEL)...)
	if len(conditions) == 0 {
		return query.All(), nil
	}
	return query.And(conditions...), nil
}

// leadingField matches a path without its first dot.
var leadingField = regexp.MustCompile(`^\s*([A-Za-z_][\w.-]*)`)

// missingDotHint returns a remedy for a condition that begins with a field name.
func missingDotHint(condition string) string {
	if match := leadingField.FindStringSubmatch(condition); match != nil {
		return "; write ." + match[1]
	}
	return ""
}

// ExplainQuery converts errors about the query itself into usage errors. It returns other errors unchanged.
func ExplainQuery(err error) error {
	if queryErr, ok := errors.AsType[*query.Error](err); ok {
		return UsageLines(fmt.Sprintf("%v\n%s", queryErr, queryErr.Caret()))
	}
	var sortErr *query.SortError
	var pathErr *jsonpath.Error
	if errors.As(err, &sortErr) && errors.As(sortErr.Err, &pathErr) {
		return UsageLines(fmt.Sprintf("--sort-by: %s\n%s", pathErr.Text(), pathErr.Caret()))
	}
	if celErr, ok := errors.AsType[*expression.Error](err); ok {
		p := celErr.Problems[0]
		return UsageLines(fmt.Sprintf("--where-cel: %s; %s\n%s", p.Message, p.Hint,
			jsonpath.Diagnostic{Expr: celErr.Text, Offset: p.Offset, Length: p.End - p.Offset}.Caret()))
	}
	if errors.Is(err, expression.ErrNoCompiler) {
		return Usagef("--where-cel: %v; %s", err, expression.NoCompilerRemedy)
	}
	if errors.As(err, &pathErr) {
		return UsageLines(fmt.Sprintf("--where: %s%s\n%s", pathErr.Text(), missingDotHint(pathErr.Expr),
			pathErr.Caret()))
	}
	switch {
	case errors.As(err, new(*query.UnknownIndexError)), errors.As(err, new(*query.DroppedFieldError)),
		errors.As(err, new(*query.UnsortedError)), errors.As(err, new(*query.SortError)),
		errors.As(err, new(*query.UnknownReferenceError)), errors.As(err, new(*indexers.OperandError)),
		errors.Is(err, query.ErrContinue):
		return Usagef("%v", err)
	}
	return err
}
