package query_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// codeBlocks returns the code blocks of a language.
func codeBlocks(t *testing.T, docs, language string) (blocks []string) {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(docs, -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	return blocks
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestDocumentedQueries verifies that every query of the documentation has the documented result and plan.
func TestDocumentedQueries(t *testing.T) {
	data, err := os.ReadFile("../../docs/query.md")
	noError(t, err)
	docs := string(data)
	blocks := codeBlocks(t, docs, "yaml")
	c, err := indexers.Parse(indexers.Source{Name: "docs.yaml", Data: []byte(blocks[0])})
	noError(t, err)
	var objects []map[string]any
	noError(t, yaml.Unmarshal([]byte(blocks[1]), &objects))
	f := indexers.Compile(c.Resources[0])
	s := newCache(t, dynamicinformer.StoragePacked, f)
	for _, o := range objects {
		o["apiVersion"], o["kind"] = "example.com/v1", "Lamp"
		put(t, s, &unstructured.Unstructured{Object: o})
	}
	querier := query.New(cacheSource{s}, f.Indexes()...)

	_, table, _ := strings.Cut(docs, "| query | finds |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 20 {
		t.Fatalf("the documentation has %d queries, want at least 20", len(rows))
	}
	span := regexp.MustCompile("`([^`]+)`")
	for _, row := range rows {
		cells := span.FindAllStringSubmatch(strings.ReplaceAll(row, `\|`, "|"), -1)
		want := []string{}
		for _, cell := range cells[1:] {
			want = append(want, cell[1])
		}
		q, err := query.Parse(cells[0][1])
		if err != nil {
			t.Errorf("Parse of the documented query %q: %v", cells[0][1], err)
			continue
		}
		got, err := querier.Keys(t.Context(), q,
			query.Options{AllowScan: true, Now: time.Date(2025, 12, 31, 12, 0, 0, 0, time.UTC)})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Keys of %s: %v (-documented +got):\n%s", q, err, diff)
		}
	}

	checkDocumentedGroups(t, querier, docs)
	plain := codeBlocks(t, docs, "")
	text := strings.Split(plain[0], "\n")[1]
	q, err := query.Parse(text)
	noError(t, err)
	_, err = querier.Query(t.Context(), q, query.Options{})
	e, ok := err.(*query.Error)
	if !ok || e.Error()+"\n"+e.Caret()+"\n" != plain[0] {
		t.Errorf("Query of %s: got the error %v, want\n%s", q, err, plain[0])
	}
	for _, want := range plain[1:] {
		q, err := query.Parse(strings.TrimPrefix(strings.Split(want, "\n")[0], "query  "))
		noError(t, err)
		options := query.Options{}
		if strings.Contains(want, "along watts, up to 1 object") {
			options = query.Options{SortBy: "watts", Descending: true, Limit: 1}
		}
		plan, err := querier.Explain(q, options)
		if err != nil || cmp.Diff(want, plan.String()) != "" {
			t.Errorf("plan of %s: %v (-documented +got):\n%s", q, err, cmp.Diff(want, plan.String()))
		}
	}

	counted := regexp.MustCompile("`([^`]+)` finds (\\d+) objects? by (\\d+) tests").
		FindAllStringSubmatch(docs, -1)
	if len(counted) != 2 {
		t.Errorf("%d sentences of the documentation count tests, want 2", len(counted))
	}
	for _, want := range counted {
		q, err := query.Parse(want[1])
		noError(t, err)
		result, err := querier.Query(t.Context(), q, query.Options{})
		if err != nil || fmt.Sprint(result.Plan.Found, result.Plan.Examined) != want[2]+" "+want[3] {
			t.Errorf("Query = %v, %v; documented: %s", result, err, want[0])
		}
	}
}

// checkDocumentedGroups verifies that every documented aggregation has the documented result.
func checkDocumentedGroups(t *testing.T, querier *query.Querier, docs string) {
	t.Helper()
	_, table, _ := strings.Cut(docs, "| by | measures | of the objects above |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) != 4 {
		t.Fatalf("the documentation has %d aggregations, want 4", len(rows))
	}
	code := regexp.MustCompile("`([^`]+)`")
	codeSpans := func(cell string) (texts []string) {
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			texts = append(texts, m[1])
		}
		return texts
	}
	format := func(text string) string {
		if text == "" || text == indexers.Null {
			return "none"
		}
		return "`" + text + "`"
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		got, err := querier.Aggregate(t.Context(), query.All(),
			query.Aggregation{GroupBy: codeSpans(cells[0]),
				Measures: measures(t, codeSpans(cells[1])...)}, query.Options{})
		if err != nil {
			t.Errorf("Aggregate of %s: %v", row, err)
			continue
		}
		var groups []string
		for _, g := range got.Groups {
			var words []string
			for _, v := range g.Values {
				words = append(words, format(v))
			}
			words = append(words, fmt.Sprintf("%d:", g.Count))
			for _, r := range g.Results {
				words = append(words, format(r.Value))
			}
			groups = append(groups, strings.Join(words, " "))
		}
		if want := strings.TrimSpace(cells[2]); want != strings.Join(groups, "; ") {
			t.Errorf("groups = %s, documented:\n%s", strings.Join(groups, "; "), row)
		}
	}
}
