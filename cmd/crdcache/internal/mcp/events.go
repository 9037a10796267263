package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// eventPaths are the values of an event: its times and counts, of which the first one counts, and others.
var eventPaths = []string{".series.lastObservedTime", ".lastTimestamp", ".eventTime",
	".metadata.creationTimestamp", ".series.count", ".count", ".type", ".reason", ".message",
	".involvedObject.apiVersion", clusterPath}

// setEvents sets the latest Kubernetes Events about the root of trees, or why they are unknown.
func (o *verb) setEvents(ctx context.Context, a *answer, trees []byte, in args, budget int) error {
	var clusters []struct {
		Trees []struct{ Group, Kind, Namespace string }
	}
	if !bytes.HasPrefix(trees, []byte("[")) {
		trees = slices.Concat([]byte("["), trees, []byte("]"))
	}
	err := json.Unmarshal(trees, &clusters)
	if err != nil || len(clusters) == 0 || len(clusters[0].Trees) == 0 {
		return err
	}
	root := clusters[0].Trees[0]
	about := args{Type: "events.v1.", Namespace: in.Namespace, Columns: eventPaths,
		Where: fmt.Sprintf("@.involvedObject.kind == %s && @.involvedObject.name == %s",
			print.Compact(root.Kind), print.Compact(in.Name))}
	if root.Namespace == "" {
		about.Namespace = o.namespace // its events are in any namespace
	}
	var out, errOut bytes.Buffer
	line := o.commandLine("query", []string{"query"}, about)
	code := o.runVerb(o.shared.Context(ctx, nil), line, &out, &errOut)
	_, rows, err := readRows(out.Bytes(), eventPaths, false)
	if err != nil {
		return err
	}
	reason, _, _ := strings.Cut(strings.TrimPrefix(errOut.String(), "error: "), "\n")
	switch text := shorten("Kubernetes Events: "+reason, 2*maxCell, 1).(string); {
	case o.readsFiles && strings.Contains(reason, "has no resource type"):
		a.Notes = append(a.Notes, text)
	case code != 0:
		a.Complete, a.Unknown = false, append(a.Unknown, text)
	case len(rows) == 0:
		a.Notes = append(a.Notes, "no Kubernetes Events about it")
	}
	var events [][]any
	for _, row := range rows {
		cells := row[2:]
		version, _ := cells[9].(string)
		if gv, _ := schema.ParseGroupVersion(version); version != "" && gv.Group != root.Group {
			continue // about another kind of the same name
		}
		if o.flags.SelectsContexts() {
			row[0] = fmt.Sprintf("%v %v", cells[10], row[0])
		}
		row = append([]any{row[0], firstSet(cells[:4]), firstSet(cells[4:6])}, cells[6:9]...)
		events = append(events, row)
	}
	timeOf := func(event []any) string {
		text, _ := event[1].(string)
		return text
	}
	slices.SortStableFunc(events, func(x, y []any) int { return strings.Compare(timeOf(y), timeOf(x)) })
	shown := answer{}
	shown.setRows(events, 0, len(events), budget)
	if a.Events = shown.Rows; len(shown.Rows) < len(events) {
		a.Events = append(a.Events, []any{fmt.Sprintf("… (%d earlier)", len(events)-len(shown.Rows))})
	}
	return nil
}

// firstSet returns the first value that an object has, or nil. find returns a list for other values.
func firstSet(cells []any) any {
	for _, cell := range cells {
		if _, isUnset := cell.([]any); !isUnset && cell != nil {
			return cell
		}
	}
	return nil
}
