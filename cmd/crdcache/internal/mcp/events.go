package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// eventTimeout is for all events. A slow list of them must not hide a tree.
const eventTimeout = 15 * time.Second

// eventPaths are the values of an event of the core group or of events.k8s.io: times, counts, messages and
// versions of the object, of which the first one counts, and others.
var eventPaths = []string{".series.lastObservedTime", ".lastTimestamp", ".deprecatedLastTimestamp",
	".eventTime", ".metadata.creationTimestamp", ".series.count", ".count", ".deprecatedCount", ".message",
	".note", ".involvedObject.apiVersion", ".regarding.apiVersion", ".type", ".reason", clusterPath}

// setEvents sets the latest Kubernetes Events about the root of trees, or why they are unknown.
func (o *verb) setEvents(ctx context.Context, a *answer, report *session.Report, trees []byte, in args,
	budget int) error {
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
	about := args{Namespace: in.Namespace, Columns: eventPaths}
	if root.Namespace == "" {
		about.Namespace = o.namespace // its events are in any namespace
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	var events [][]any
	absent, seen := []string(nil), map[string]bool{}
	types := []string{"events.v1.", "events.v1.events.k8s.io"}
	if !o.readsFiles {
		types = types[:1] // a cluster has the same events in both
	}
	for i, typeName := range types {
		about.Type = typeName
		reference := []string{"@.involvedObject", "@.regarding"}[i]
		about.Where = fmt.Sprintf("%s.kind == %s && %[1]s.name == %[3]s", reference, jsontext.Compact(root.Kind),
			jsontext.Compact(in.Name))
		var out, errOut bytes.Buffer
		read := &session.Report{Limit: maxBudget}
		line := o.commandLine("query", []string{"query"}, about)
		code := o.runVerb(o.shared.Context(ctx, read), line, &out, &errOut)
		report.Read(schema.GroupResource{Resource: "events"}, "", read.Contact)
		_, rows, err := readRows(out.Bytes(), eventPaths, false)
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(row []any) bool { // files can have an event in both forms
			key := fmt.Sprint(row[0], "/", row[1], row[len(row)-1])
			isKnown := seen[key]
			seen[key] = true
			return isKnown
		})
		events = append(events, eventRows(rows, root.Group, o.flags.SelectsContexts())...)
		if _, reason, _ := strings.Cut("\n"+errOut.String(), "\nerror: "); code != 0 {
			absent = append(absent, reason)
		}
	}
	isNoType := func(reason string) bool { return strings.Contains(reason, "has no resource type") && o.readsFiles }
	switch unknown := slices.DeleteFunc(slices.Clone(absent), isNoType); {
	case len(unknown) > 0:
		reason, _, _ := strings.Cut(unknown[0], "\n")
		if ctx.Err() != nil {
			reason = fmt.Sprintf("no answer within %v", eventTimeout)
		}
		a.addUnknown("Kubernetes Events: " + reason)
	case root.Namespace == "" && o.namespace != "":
		a.addUnknown("Kubernetes Events in other namespaces than " + o.namespace)
	case len(absent) == len(types):
		a.Notes = append(a.Notes, "the files have no Kubernetes Events")
	case len(events) == 0:
		a.Notes = append(a.Notes, "no Kubernetes Events about it")
	}
	timeOf := func(event []any) string {
		text, _ := event[1].(string)
		return text
	}
	slices.SortStableFunc(events, func(x, y []any) int { return strings.Compare(timeOf(y), timeOf(x)) })
	shown := answer{}
	shown.setRows(events, 0, len(events), budget+reservedBytes)
	if a.Events = shown.Rows; len(shown.Rows) < len(events) {
		a.Events = append(a.Events, []any{fmt.Sprintf("… (%d more)", len(events)-len(shown.Rows))})
	}
	return nil
}

// eventRows returns the rows of events about an object of a group.
func eventRows(rows [][]any, group string, withCluster bool) (events [][]any) {
	for _, row := range rows {
		cells := row[2:]
		version, _ := firstSet(cells[10:12]).(string)
		if gv, _ := schema.ParseGroupVersion(version); version != "" && gv.Group != group {
			continue // another kind of the same name
		}
		if withCluster {
			row[0] = fmt.Sprintf("%v %v", cells[14], row[0])
		}
		event := []any{row[0]}
		for _, n := range [][2]int{{0, 5}, {5, 8}, {12, 13}, {13, 14}, {8, 10}} {
			event = append(event, firstSet(cells[n[0]:n[1]]))
		}
		events = append(events, event)
	}
	return events
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
