package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/readapi/live"
)

// Local is the server that keeps the type of a command.
type Local struct {
	*local.Client
	local.Kept
	// Types print objects of the type by what the server knows.
	Types *Types

	config string // the digest of the server's index configs
}

// Local looks for a server that answers queries about the type of the command as its own caches would: it keeps the type, with
// the same indexes, and is in contact with the cluster. The error says why there is none.
func (r *Reader) Local(ctx context.Context) (*Local, error) {
	l, err := r.Keeping(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.Config.Given && (r.Config.digest == "" || r.Config.digest != l.config):
		return nil, errors.New("it has other index configs")
	case !r.Config.Given && slices.ContainsFunc(l.Indexes, query.IsBuiltinOrder):
		return nil, errors.New("it has an index with the name of an order that all types have")
	}
	return l, nil
}

// Keeping is Local for what needs no indexes.
func (r *Reader) Keeping(ctx context.Context) (*Local, error) {
	switch {
	case r.server == nil:
		return nil, r.noServer
	case r.cached.FieldSelector != nil:
		return nil, errors.New("it takes no field selectors")
	case len(r.types) != 1:
		return nil, errors.New("it answers for one type")
	}
	answer, err := r.server.Resolve(ctx, r.types[0])
	if err != nil {
		return nil, err
	}
	if len(answer.Resources) != 1 {
		return nil, fmt.Errorf("%s is more than one type", r.types[0])
	}
	of := answer.Resources[0]
	i := slices.IndexFunc(answer.Types, func(k local.Kept) bool { return k.Resource.GVR == of.GVR })
	if i < 0 {
		return nil, fmt.Errorf("it does not keep %s", of)
	}
	kept := answer.Types[i]
	switch {
	case !kept.Fresh:
		return nil, fmt.Errorf("its copy of %s may be behind: %s", of, kept.State)
	case kept.Namespace != "" && kept.Namespace != r.Target.Namespace:
		return nil, fmt.Errorf("it keeps %s of the namespace %s alone", of, kept.Namespace)
	}
	types, err := r.typesOf([]discovery.Resource{of})
	return &Local{r.server, kept, types, answer.Config}, err
}

// LocalNamespace is the namespace that objects of a type are read of; empty for all.
func (r *Reader) LocalNamespace(of discovery.Resource) string {
	if of.Scope == discovery.Namespaced {
		return r.Target.Namespace
	}
	return ""
}

// Query asks for what a query finds in a namespace, or in all.
func (l *Local) Query(ctx context.Context, namespace string, parameters url.Values) (*live.Answer, error) {
	answer := &live.Answer{}
	path := live.QueryPath(l.Resource.GVR.Group, l.Resource.GVR.Version, namespace, l.Resource.GVR.Resource)
	return answer, l.Get(ctx, path, parameters, answer)
}

// AnswerSection is the objects of an answer, or their rows.
func (r *Reader) AnswerSection(of discovery.Resource, answer *live.Answer) print.Section {
	if len(answer.Columns) > 0 {
		return RowSection(of, answer, false)
	}
	return print.Section{Resource: of, Len: len(answer.Items), Print: func(ctx context.Context, _ func([]string), printer print.Printer) error {
		for _, text := range answer.Items {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			object, err := r.decode(text)
			if err == nil {
				err = printer.Print(object)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// RowSection is the rows of an answer, in its order, or sorted as objects of a list are. Of the objects there is no more than a
// table needs.
func RowSection(of discovery.Resource, answer *live.Answer, sorted bool) print.Section {
	var row live.Row // that is printed
	rows := print.NewPrintedRows(answer.Columns, func(*unstructured.Unstructured) []any { return row.Cells })
	return print.Section{Resource: of, Len: len(answer.Rows), Rows: rows, Print: func(ctx context.Context, sort func([]string), printer print.Printer) error {
		all := answer.Rows
		if sorted {
			all = sortedRows(all, sort)
		}
		for _, row = range all {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetNamespace(row.Namespace)
			object.SetName(row.Name)
			object.SetLabels(row.Labels)
			if err := printer.Print(object); err != nil {
				return err
			}
		}
		return nil
	}}
}

// sortedRows are rows in the order in which sort puts their keys.
func sortedRows(rows []live.Row, sort func(keys []string)) []live.Row {
	keys, of := make([]string, len(rows)), make(map[string]live.Row, len(rows))
	for i, row := range rows {
		if keys[i] = row.Name; row.Namespace != "" {
			keys[i] = row.Namespace + "/" + row.Name
		}
		of[keys[i]] = row
	}
	sort(keys)
	sorted := make([]live.Row, len(rows))
	for i, key := range keys {
		sorted[i] = of[key]
	}
	return sorted
}

// decode makes an object of its JSON, without what is not to be printed.
func (r *Reader) decode(text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	return object, r.transform(object)
}
