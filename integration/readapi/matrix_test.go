package readapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// question is a request for both servers. In its path, NOW stands for the version of a list of workloads on that
// server, and TOKEN for what continues one there.
type question struct{ method, path, accept string }

// query joins names and values in turn, without those that have no value.
func query(pairs ...string) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			parts = append(parts, pair[0]+"="+url.QueryEscape(pair[1]))
		}
	}
	return strings.Join(parts, "&")
}

// combinations calls with every choice of one value for each name, as query takes it.
func combinations(names []string, values [][]string, call func(pairs []string)) {
	var choose func(pairs []string)
	choose = func(pairs []string) {
		at := len(pairs) / 2
		if at == len(names) {
			call(pairs)
			return
		}
		for _, value := range values[at] {
			choose(append(pairs[:len(pairs):len(pairs)], names[at], value))
		}
	}
	choose(nil)
}

// compare compares the answers of a storage, and those of a cache, with the ones of a real API server.
func compare(t *testing.T, questions []question) {
	t.Helper()
	t.Run("storage", func(t *testing.T) { askBoth(t, newPair(t), questions) })
	t.Run("cache", func(t *testing.T) { askBoth(t, newLivePair(t), questions) })
}

// askBoth compares the answers to many questions, some at a time.
func askBoth(t *testing.T, p *pair, questions []question) {
	t.Helper()
	ofReal, ofOurs := placeholders(t, p.real), placeholders(t, p.ours)
	slots := make(chan struct{}, 24)
	var wg sync.WaitGroup
	for _, q := range questions {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			header := http.Header{}
			if q.accept != "" {
				header.Set("Accept", q.accept)
			}
			want := ask(t, p.real, q.method, ofReal.Replace(q.path), header)
			got := ask(t, p.ours, q.method, ofOurs.Replace(q.path), header)
			if problems := differences(t, want, got); problems != "" {
				t.Errorf("%s %s (%s):\n%s", q.method, q.path, q.accept, problems)
			}
		})
	}
	wg.Wait()
}

func placeholders(t *testing.T, config *rest.Config) *strings.Replacer {
	t.Helper()
	var list struct {
		Metadata struct{ Continue, ResourceVersion string }
	}
	decode(t, ask(t, config, http.MethodGet, base+"workloads?limit=2", http.Header{}).body, &list)
	return strings.NewReplacer("NOW", list.Metadata.ResourceVersion, "TOKEN", list.Metadata.Continue)
}

// protobuf is what readapi doesn't serve, and so doesn't list among what it does. What a cache passes on lists it.
var protobuf = strings.NewReplacer(", application/vnd.kubernetes.protobuf;stream=watch", "", ", application/vnd.kubernetes.protobuf", "")

func differences(t *testing.T, want, got answer) string {
	t.Helper()
	var problems []string
	note := func(what, diff string) {
		if diff != "" {
			problems = append(problems, what+" (-want +got): "+diff)
		}
	}
	note("code", cmp.Diff(want.code, got.code))
	for _, name := range []string{"Content-Type", "Retry-After", "Warning", "Cache-Control", "X-Content-Type-Options"} {
		note(name, cmp.Diff(want.header.Get(name), got.header.Get(name)))
	}
	want, got = fromYAML(t, want), fromYAML(t, got)
	const event = `{"type":`
	if strings.HasPrefix(want.body, event) || strings.HasPrefix(got.body, event) {
		note("events", cmp.Diff(events(t, want.body), events(t, got.body)))
	} else {
		note("body", cmp.Diff(comparableJSON(t, protobuf.Replace(want.body)), comparableJSON(t, protobuf.Replace(got.body))))
	}
	return strings.Join(problems, "\n")
}

// fromYAML returns an answer in JSON that may have come in YAML.
func fromYAML(t *testing.T, a answer) answer {
	t.Helper()
	if a.header.Get("Content-Type") == "application/yaml" {
		data, err := yaml.YAMLToJSON([]byte(a.body))
		if err != nil {
			t.Errorf("%v in %s", err, a.body)
		}
		a.body = string(data)
	}
	return a
}

// latestToken continues after edge/dns with what is there now.
const latestToken = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL2VkZ2UvZG5zXHUwMDAwIn0"

// TestListParameters asks for all combinations of the parameters that say which state a list is of, and its pages.
func TestListParameters(t *testing.T) {
	var all []question
	combinations(
		[]string{"resourceVersion", "resourceVersionMatch", "limit", "continue", "sendInitialEvents"},
		[][]string{
			{"", "0", "NOW", "abc", "-1", "00", "18446744073709551616"}, {"", "Exact", "NotOlderThan", "Foo"},
			{"", "2", "-1"}, {"", "TOKEN", latestToken, "abc"}, {"", "true", "false"},
		},
		func(pairs []string) {
			all = append(all, question{http.MethodGet, base + "workloads?" + query(pairs...), "application/json"})
		})
	compare(t, all)
}

// TestWatchParameters asks for all combinations of those that say what a watch begins with.
func TestWatchParameters(t *testing.T) {
	var all []question
	combinations(
		[]string{"watch", "timeoutSeconds", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "limit", "continue"},
		[][]string{
			{"true"}, {"1"}, {"", "0", "NOW", "abc", "-1", "00"}, {"", "Exact", "NotOlderThan", "Foo"},
			{"", "true", "false", "x"}, {"", "true"}, {"", "2"}, {"", "TOKEN"},
		},
		func(pairs []string) {
			all = append(all, question{http.MethodGet, base + "environments?" + query(pairs...), "application/json"})
		})
	compare(t, all)
}

// TestAcceptHeaders asks for everything in many forms, but for two. Protobuf readapi never serves, and a
// kube-apiserver does for errors. Watches of PartialObjectMetadataList are empty there.
func TestAcceptHeaders(t *testing.T) {
	const meta = ";g=meta.k8s.io"
	accepts := []string{
		"", "*/*", "application/*", "text/*", "text/html", "text/plain", "garbage", "APPLICATION/JSON", "application/json", "application/yaml", "application/cbor",
		"application/json;q=0", "application/json;q=x", "application/json;q=0.5,application/yaml", ", application/json", "application/json;;", "application/json;charset=utf-8",
		"application/json;stream=watch", "application/json;pretty=1", "application/json;profile=nominal", "application/json;v=v1",
		"application/json;as=Table", "application/json;as=Table;v=v2" + meta, "application/json;as=Table;v=v1;g=foo", "application/json;as=Status;v=v1;g=",
		asTable, "application/json;as=Table;v=v1beta1" + meta, "application/yaml;as=Table;v=v1" + meta,
		asTable + ",application/json;as=Table;v=v1beta1" + meta + ",application/json", "application/json;as=Foo;v=v1" + meta + ",application/json",
		asPartial, "application/json;as=PartialObjectMetadata;v=v1beta1" + meta, "application/yaml;as=PartialObjectMetadata;v=v1" + meta, "*/*;as=PartialObjectMetadata;v=v1" + meta,
		asPartialList, "application/json;as=PartialObjectMetadataList;v=v1beta1" + meta, "application/yaml;as=PartialObjectMetadataList;v=v1" + meta,
	}
	paths := []string{
		base + "environments", base + "environments?limit=-1", base + "environments?limit=abc", base + "environments?includeObject=x",
		base + "environments/production-eu", base + "environments/none", base + "environments/production-eu/status", base + "nope",
		base + "environments?watch=true&timeoutSeconds=1", base + "environments?watch=true&resourceVersion=abc", base + "environments?watch=true&fieldSelector=x%3Dy",
		"/apis/" + group, "/apis/nope", "/api/v2", "/api/v1/nope", "/nope", "/healthz",
	}
	var all []question
	for _, accept := range accepts {
		for _, path := range paths {
			if !strings.Contains(path, "&timeoutSeconds") || !strings.Contains(accept, "MetadataList") {
				all = append(all, question{http.MethodGet, path, accept})
			}
		}
	}
	compare(t, all)
}

// TestMethods sends what is no question. A kube-apiserver answers any method with most of discovery; readapi doesn't. A
// cache refuses whatever is no reading in words of its own.
func TestMethods(t *testing.T) {
	var all []question
	for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodTrace, "FOO"} {
		for _, path := range []string{"", "/production-eu", "/none", "?limit=abc"} {
			all = append(all, question{method, base + "environments" + path, "application/json"})
		}
		all = append(all, question{method, "/nope", ""}, question{method, base + "nope", ""}, question{method, "/healthz", ""})
	}
	for _, method := range []string{http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "FOO"} {
		for _, path := range []string{"/version", "/api", "/api/v1"} {
			all = append(all, question{method, path, "application/json"})
		}
	}
	t.Run("storage", func(t *testing.T) { askBoth(t, newPair(t), all) })
	t.Run("cache", func(t *testing.T) {
		askBoth(t, newLivePair(t), slices.DeleteFunc(all, func(q question) bool { return q.method != http.MethodHead }))
	})
}
