package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// TestQueryNumbers prints groups and counts as JSON and CSV, without a config.
func TestQueryNumbers(t *testing.T) {
	server := newCluster(t)
	for name, color := range map[string]any{"a": "red", "b": "red", "c": "blue"} {
		server.Create(t, gizmos, object("Gizmo", "web", name,
			map[string]any{"color": color, "size": int64(len(color.(string)))}))
	}
	server.Create(t, gizmos, object("Gizmo", "web", "d", nil))
	for name, tt := range map[string]struct {
		args []string
		code int
		out  string
	}{
		"groups": {[]string{"--group-by", ".spec.color", "--compute", "sum(.spec.size)", "-o", "json"}, exit.OK, `[
    {
        "values": {
            ".spec.color": "red"
        },
        "count": 2,
        "computed": {
            "sum(.spec.size)": 6
        }
    },
    {
        "values": {
            ".spec.color": "blue"
        },
        "count": 1,
        "computed": {
            "sum(.spec.size)": 4
        }
    },
    {
        "values": {
            ".spec.color": null
        },
        "count": 1,
        "computed": {
            "sum(.spec.size)": null
        }
    }
]
`},
		"table of groups": {[]string{"--group-by", ".spec.color", "-o", "csv"}, exit.OK,
			".SPEC.COLOR,COUNT\nred,2\nblue,1\n,1\n"},
		"no headers": {[]string{"--group-by", ".spec.color", "-o", "csv", "--no-headers"}, exit.OK,
			"red,2\nblue,1\n,1\n"},
		"count":           {[]string{"--count", "-o", "json"}, exit.OK, "{\n    \"count\": 4\n}\n"},
		"count in csv":    {[]string{"--count", "-o", "csv"}, exit.OK, "COUNT\n4\n"},
		"other formats":   {[]string{"--count", "-o", "yaml"}, exit.Usage, ""},
		"of objects only": {[]string{"--keys-only", "-o", "json"}, exit.Usage, ""},
	} {
		t.Run(name, func(t *testing.T) {
			crdcache(t, append([]string{"query", "gizmos", "-A", "-s", server.URL}, tt.args...)...).expect(t,
				tt.code, tt.out)
		})
	}
}

// TestQueryByPaths sorts, groups and computes by paths without a config.
func TestQueryByPaths(t *testing.T) {
	server := newIndexedServer(t)
	args := []string{"query", "gz", "-A", "-s", server.URL}
	sorted := append(args, "--sort-by", ".spec.color desc,.spec.size", "--keys-only")
	want := crdcache(t, sorted...).out
	got, token := "", ""
	for page := 0; page < 4; page++ {
		one := append(slices.Clone(sorted), "--limit", "1")
		if token != "" {
			one = append(one, "--continue", token)
		}
		r := crdcache(t, one...)
		got += r.out
		_, token, _ = strings.Cut(strings.TrimSpace(r.errOut), "--continue ")
	}
	if got != want || strings.Count(want, "\n") != 4 || token != "" {
		t.Errorf("page by page\n%s\nat once\n%s", got, want)
	}
	crdcache(t, append(args, "--group-by", ".spec.color", "--compute", "max(.spec.size)", "-o", "csv",
		"--no-headers")...).expect(t, exit.OK, "red,2,100\nblue,1,9\n,1,1\n")
}
