package readapi_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

type kind struct {
	apiVersion, kind, collection string
	namespace                    string
	hasStatus                    bool
	// builtIn types drop unknown fields and have their own defaults.
	builtIn bool
	// contents are fields for its objects.
	contents []map[string]any
}

func (k kind) path(name string) string { return k.collection + "/" + name }

// step is a request template that each side completes with its own versions and UIDs.
type step struct {
	name       string
	newRequest func(s *testedServer) request
}

const (
	mediaJSON  = "application/json"
	mediaMerge = "application/merge-patch+json"
	mediaPatch = "application/json-patch+json"
)

func pickRandom[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// pickMostly returns the first value most of the time.
func pickMostly[T any](r *rand.Rand, usual T, others ...T) T {
	if r.IntN(3) > 0 {
		return usual
	}
	return pickRandom(r, others...)
}

// newStep returns a random step. Both sides use the same step.
func newStep(r *rand.Rand, k kind) step {
	name := pickRandom(r, "a", "b", "c")
	switch r.IntN(12) {
	case 0, 1, 2:
		return newCreate(r, k, name)
	case 3, 4, 5:
		return newUpdate(r, k, name)
	case 6, 7:
		return newPatch(r, k, name)
	case 8, 9:
		return newDelete(r, k, name)
	case 10:
		query := pickMostly(r, "labelSelector=l%3Dx", "fieldSelector=metadata.name%3Da",
			"labelSelector=l%3Dx&limit=1", "fieldSelector=spec.none%3Da", "labelSelector=l%3Dx&dryRun=All")
		return step{"delete all " + query, func(*testedServer) request {
			return request{method: http.MethodDelete, path: k.collection, query: query}
		}}
	}
	if r.IntN(2) == 0 {
		return step{"list", func(*testedServer) request {
			return request{method: http.MethodGet, path: k.collection}
		}}
	}
	return step{"get " + name,
		func(*testedServer) request { return request{method: http.MethodGet, path: k.path(name)} }}
}

// metadata is the metadata of created objects, besides the name.
var metadata = []map[string]any{
	{}, {"labels": map[string]any{"l": "x"}}, {"finalizers": []any{"example.com/f"}},
	{"finalizers": []any{"foregroundDeletion"}},
	{"annotations": map[string]any{"n": "1"}, "labels": map[string]any{"l": "x"},
		"finalizers": []any{"example.com/f", "example.com/g"}},
	{"labels": map[string]any{"l": "not valid"}}, {"labels": map[string]any{"l": 1}},
	{"annotations": map[string]any{"a b": "x"}},
	{"finalizers": []any{"no domain"}}, {"name": "Upper"}, {"name": ""}, {"name": "",
		"generateName": "gen-"}, {"name": nil}, {"namespace": "elsewhere"},
	{"resourceVersion": "12345"}, {"uid": "mine"}, {"generation": 7},
	{"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3},
	{"creationTimestamp": "2020-01-01T00:00:00Z"}, {"creationTimestamp": nil}, {"selfLink": "/x"},
	{"odd": "x"}, {"labels": nil},
	{"ownerReferences": []any{owner("1"), owner("1"),
		owner("2")}}, {"ownerReferences": []any{map[string]any{"kind": "A", "name": "a"}}},
	{"managedFields": []any{map[string]any{"manager": "me", "operation": "Update", "apiVersion": "v1",
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:x": map[string]any{}}}}},
}

func owner(uid string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid}
}

func newCreate(r *rand.Rand, k kind, name string) step {
	object := map[string]any{"apiVersion": k.apiVersion, "kind": k.kind}
	meta := map[string]any{"name": name}
	for key, value := range pickMostly(r, pickRandom(r, metadata[:5]...), metadata...) {
		meta[key] = value
	}
	object["metadata"] = meta
	for key, value := range pickRandom(r, k.contents...) {
		object[key] = value
	}
	oddities := []string{"kind", "version", "no kind", "no version", "no metadata"}
	if k.builtIn { // the message for an unknown kind differs
		oddities = oddities[2:]
	}
	change := pickMostly(r, "", oddities...)
	switch change {
	case "kind":
		object["kind"] = "Other"
	case "version":
		object["apiVersion"] = "example.com/v9"
	case "no kind":
		delete(object, "kind")
	case "no version":
		delete(object, "apiVersion")
	case "no metadata":
		delete(object, "metadata")
	}
	query := pickMostly(r, "", "dryRun=All", "dryRun=Some", "fieldValidation=Strict", "fieldValidation=Ignore",
		"fieldValidation=Odd", "fieldManager=me")
	return step{fmt.Sprint("create ", object, " ", query), func(*testedServer) request {
		return request{method: http.MethodPost, path: k.collection, query: query,
			media: mediaJSON, body: object}
	}}
}

// change is the difference between an object and its update.
type change struct {
	name  string
	apply func(object, meta map[string]any)
}

var changes = []change{
	{"nothing", func(_, _ map[string]any) {}},
	{"labels", func(_, m map[string]any) { m["labels"] = map[string]any{"l": "x", "m": "y"} }},
	{"no labels", func(_, m map[string]any) { delete(m, "labels") }},
	{"finalizers", func(_, m map[string]any) { m["finalizers"] = []any{"example.com/f", "example.com/h"} }},
	{"no finalizers", func(_, m map[string]any) { delete(m, "finalizers") }},
	{"no finalizers", func(_, m map[string]any) { m["finalizers"] = []any{} }},
	{"one finalizer", func(_, m map[string]any) { m["finalizers"] = []any{"example.com/f"} }},
	{"a status", func(o, _ map[string]any) { o["status"] = map[string]any{"phase": "b", "n": 3} }},
	{"no status", func(o, _ map[string]any) { delete(o, "status") }},
	{"no version", func(_, m map[string]any) { delete(m, "resourceVersion") }},
	{"version 0", func(_, m map[string]any) { m["resourceVersion"] = "0" }},
	{"odd version", func(_, m map[string]any) { m["resourceVersion"] = "x" }},
	{"another uid", func(_, m map[string]any) { m["uid"] = "other" }},
	{"no uid", func(_, m map[string]any) { delete(m, "uid") }},
	{"another name", func(_, m map[string]any) { m["name"] = "d" }},
	{"no name", func(_, m map[string]any) { delete(m, "name") }},
	{"another namespace", func(_, m map[string]any) { m["namespace"] = "elsewhere" }},
	{"no namespace", func(_, m map[string]any) { delete(m, "namespace") }},
	{"a time", func(_, m map[string]any) { m["creationTimestamp"] = "2020-01-01T00:00:00Z" }},
	{"a generation", func(_, m map[string]any) { m["generation"] = 77 }},
	{"a deletion", func(_, m map[string]any) { m["deletionTimestamp"] = "2020-01-01T00:00:00Z" }},
	{"a grace period", func(_, m map[string]any) { m["deletionGracePeriodSeconds"] = 9 }},
	{"a prefix", func(_, m map[string]any) { m["generateName"] = "p-" }},
	{"owners", func(_, m map[string]any) { m["ownerReferences"] = []any{owner("1"), owner("1")} }},
	{"bad labels", func(_, m map[string]any) { m["labels"] = map[string]any{"l": "not valid"} }},
	{"odd metadata", func(_, m map[string]any) { m["odd"] = "x" }},
	{"another kind", func(o, _ map[string]any) { o["kind"] = "Other" }},
	{"another group", func(o, _ map[string]any) { o["apiVersion"] = "example.com/v9" }},
}

func newUpdate(r *rand.Rand, k kind, name string) step {
	back := pickMostly(r, 0, 1, 2)
	changes := changes
	if k.builtIn {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c change) bool {
			return strings.HasSuffix(c.name, " status") || c.name == "another kind" ||
				c.name == "another group"
		})
	}
	made := []change{pickMostly(r, pickRandom(r, changes[:9]...), changes...)}
	if r.IntN(2) == 0 {
		made = append(made, pickRandom(r, changes...))
	}
	content := pickRandom(r, k.contents...)
	if r.IntN(2) == 0 {
		made = append(made, change{fmt.Sprint(content), func(o, _ map[string]any) {
			for key, value := range content {
				o[key] = value
			}
		}})
	}
	subresource := ""
	if k.hasStatus {
		subresource = pickMostly(r, "", "/status")
	}
	query := pickMostly(r, "", "", "dryRun=All", "fieldValidation=Strict")
	what := fmt.Sprintf("update %s%s of %d ago: %s", name, subresource, back, query)
	for _, c := range made {
		what += ", " + c.name
	}
	return step{what, func(s *testedServer) request {
		object := s.earlierState(k.kind, name, back)
		if object == nil {
			object = map[string]any{"apiVersion": k.apiVersion, "kind": k.kind,
				"metadata": map[string]any{"name": name}}
			maps.Copy(object, k.contents[0])
		}
		meta := object["metadata"].(map[string]any)
		for _, c := range made {
			c.apply(object, meta)
		}
		return request{method: http.MethodPut, path: k.path(name) + subresource, query: query,
			media: mediaJSON, body: object}
	}}
}

type patchBody struct{ media, body string }

var patches = []patchBody{
	{mediaMerge, `{"metadata":{"labels":{"l":"x","m":null}}}`}, {mediaMerge,
		`{"metadata":{"finalizers":null}}`},
	{mediaMerge, `{"metadata":{"finalizers":["example.com/f"]}}`}, {mediaMerge,
		`{"spec":{"n":5}}`}, {mediaMerge, `{"spec":null}`},
	{mediaMerge, `{"status":{"phase":"c"}}`}, {mediaMerge, `{"status":null}`}, {mediaMerge,
		`{"data":{"k":"v"}}`}, {mediaMerge, `{}`},
	{mediaMerge, `{"spec":{"n":null,"unknown":1}}`}, {mediaMerge, `{"spec":{"unknown":{"a":1}},"more":1}`},
	{mediaPatch, `[{"op":"add","path":"/metadata/labels","value":{"l":"x"}}]`}, {mediaPatch,
		`[{"op":"remove","path":"/metadata/finalizers"}]`},
	{mediaPatch, `[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/metadata/annotations","value":{"t":"1"}}]`},
	{mediaPatch, `[{"op":"replace","path":"/spec/n","value":9}]`}, {mediaPatch, `[]`},
	{mediaMerge, `{"metadata":{"name":"d"}}`}, {mediaMerge, `{"metadata":{"name":null}}`}, {mediaMerge,
		`{"metadata":{"namespace":"elsewhere"}}`},
	{mediaMerge, `{"metadata":{"uid":"other"}}`}, {mediaMerge, `{"metadata":{"uid":null}}`}, {mediaMerge,
		`{"metadata":{"resourceVersion":"1"}}`},
	{mediaMerge, `{"metadata":{"resourceVersion":null}}`}, {mediaMerge,
		`{"metadata":{"labels":{"l":1}}}`}, {mediaMerge, `{"metadata":{"labels":{"l":"not valid"}}}`},
	{mediaMerge, `{"metadata":{"creationTimestamp":null,"generation":99}}`}, {mediaMerge,
		`{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`},
	{mediaMerge, `{"metadata":null}`}, {mediaMerge, `{"kind":"Other"}`}, {mediaMerge,
		`{"kind":null}`}, {mediaMerge, `{"apiVersion":"example.com/v9"}`},
	{mediaMerge, `[]`}, {mediaMerge, `{`}, {mediaMerge, `7`}, {mediaPatch, `{}`}, {mediaPatch,
		`[{"op":"odd","path":"/a"}]`}, {mediaPatch, `[{"op":"remove","path":"/none"}]`},
	{mediaPatch, `[{"op":"test","path":"/metadata/name","value":"z"}]`}, {mediaPatch,
		`[{"op":"replace","path":"","value":7}]`},
	{mediaPatch, `[{"op":"add","path":"/metadata/odd","value":"x"}]`}, {"application/odd", `{}`},
}

func newPatch(r *rand.Rand, k kind, name string) step {
	patches := patches
	if k.builtIn { // fields that its Go type knows
		patches = slices.DeleteFunc(slices.Clone(patches), func(p patchBody) bool {
			return strings.Contains(p.body, "status") || strings.Contains(p.body, "spec") ||
				strings.Contains(p.body, "data\":{\"k") || strings.Contains(p.body, `"kind"`) ||
				strings.Contains(p.body, "apiVersion")
		})
	}
	patch := pickMostly(r, pickRandom(r, patches[:16]...), patches...)
	subresource := ""
	if k.hasStatus {
		subresource = pickMostly(r, "", "/status")
	}
	query := pickMostly(r, "", "dryRun=All", "fieldValidation=Strict", "force=true", "fieldManager=me")
	return step{fmt.Sprintf("patch %s%s %s %s: %s", name, subresource, query, patch.media, patch.body),
		func(*testedServer) request {
			return request{method: http.MethodPatch, path: k.path(name) + subresource, query: query,
				media: patch.media, body: patch.body}
		}}
}

func newDelete(r *rand.Rand, k kind, name string) step {
	options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1"}
	choice := pickMostly(r, "", "Background", "Foreground", "Orphan", "Odd", "orphan", "no orphan", "both", "uid",
		"bad uid", "version", "bad version", "dry", "grace", "query", "no body")
	query := ""
	switch choice {
	case "Background", "Foreground", "Orphan", "Odd":
		options["propagationPolicy"] = choice
	case "orphan":
		options["orphanDependents"] = true
	case "no orphan":
		options["orphanDependents"] = false
	case "both":
		options["orphanDependents"], options["propagationPolicy"] = false, "Orphan"
	case "dry":
		options["dryRun"] = []any{"All"}
	case "grace":
		options["gracePeriodSeconds"] = pickRandom(r, -1, 0, 5)
	case "query":
		query, options = "propagationPolicy=Foreground&dryRun=All", nil
	case "no body":
		options = nil
	}
	return step{"delete " + name + " " + choice, func(s *testedServer) request {
		options := options
		if strings.HasSuffix(choice, "uid") || strings.HasSuffix(choice, "version") {
			wanted := map[string]any{}
			meta := map[string]any{"uid": "none", "resourceVersion": "1"}
			if state := s.earlierState(k.kind, name, 0); state != nil && !strings.HasPrefix(choice, "bad") {
				meta = state["metadata"].(map[string]any)
			}
			if strings.HasSuffix(choice, "uid") {
				wanted["uid"] = meta["uid"]
			} else {
				wanted["resourceVersion"] = meta["resourceVersion"]
			}
			options["preconditions"] = wanted
		}
		r := request{method: http.MethodDelete, path: k.path(name), query: query, media: mediaJSON}
		if options != nil {
			r.body = options
		}
		return r
	}}
}
