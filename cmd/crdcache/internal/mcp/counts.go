package mcp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

const maxParallelCounts, countTimeout, unknownCount = 10, 10 * time.Second, "unknown"

// countObjects sets the last cell of the row of each type to the number of its objects, by a list of one
// object, or to the reason why the number is unknown.
func (o *verb) countObjects(ctx context.Context, columns []string, rows [][]any, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	targets, err := o.flags.Targets(ctx, genericiooptions.IOStreams{ErrOut: io.Discard})
	if err != nil {
		return
	}
	name := slices.Index(columns, "NAME")
	_ = session.EachCluster(ctx, targets, func(ctx context.Context, t *session.Target) error {
		client, err := t.Client()
		if err != nil {
			return err // the numbers are unknown
		}
		workqueue.ParallelizeUntil(ctx, maxParallelCounts, len(rows), func(i int) {
			row := rows[i]
			if t.Cluster != "" && row[0] != t.Cluster {
				return
			}
			version, _, _ := strings.Cut(row[name+3].(string), ",")
			gvr := schema.ParseGroupResource(row[name].(string)).WithVersion(version)
			objects := dynamic.ResourceInterface(client.Resource(gvr))
			if row[name+2] == "Namespaced" {
				objects = client.Resource(gvr).Namespace(namespace)
			}
			row[len(row)-1] = countOf(ctx, objects)
		})
		return nil
	})
}

// countOf returns the number of objects, or the reason why it is unknown.
func countOf(ctx context.Context, objects dynamic.ResourceInterface) any {
	list, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return cmp.Or(string(apierrors.ReasonForError(err)), unknownCount)
	}
	switch remaining := list.GetRemainingItemCount(); {
	case remaining != nil:
		return len(list.Items) + int(*remaining)
	case list.GetContinue() != "":
		return unknownCount
	}
	return len(list.Items)
}

// countNamespaces returns the numbers of objects that a query selects in the namespaces with most of them,
// and in all others. It returns nil if they are in one namespace, or unknown.
func (o *verb) countNamespaces(ctx context.Context, verb []string, in args, budget int) [][]any {
	in.Columns, in.SortBy, in.GroupBy = nil, "", []string{".metadata.namespace"}
	var out bytes.Buffer
	line := o.commandLine("aggregate", verb, in)
	if o.runVerb(o.shared.Context(ctx, nil), line, &out, io.Discard) != 0 {
		return nil
	}
	_, counts, err := readRows(out.Bytes(), nil, false)
	if err != nil || len(counts) < 2 {
		return nil
	}
	shown, objects := answer{}, 0
	shown.setRows(counts, 0, len(counts), budget)
	for _, row := range counts[len(shown.Rows):] {
		n, _ := strconv.Atoi(row[len(row)-1].(string))
		objects += n
	}
	if others := len(counts) - len(shown.Rows); others > 0 {
		shown.Rows = append(shown.Rows, []any{fmt.Sprintf("… (%d others)", others), strconv.Itoa(objects)})
	}
	return shown.Rows
}
