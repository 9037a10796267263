package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

const modelIndexes = `
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: model}
spec:
  resources:
  - name: things
    match: {group: example.com, version: v1, resource: gizmos}
    indexes:
    - {name: color, path: .spec.color}
    - {name: size, path: .spec.size, type: int, order: sorted}
    - {name: tag, path: '.spec.tags[*]', order: sorted}
`

// thing is an object of the model. Missing fields are nil.
type thing struct {
	namespace, name string
	color           *string
	size            *int
	tags            []string
}

func (o thing) key() string { return o.namespace + "/" + o.name }

func randomThing(r *rand.Rand, n int) thing {
	o := thing{namespace: pick(r, "db", "web", "web-2"), name: fmt.Sprintf("o%02d", n)}
	if r.IntN(4) > 0 {
		o.color = new(pick(r, "red", "blue", "light blue", ""))
	}
	if r.IntN(4) > 0 {
		o.size = new(pick(r, -3, 0, 2, 9, 10, 100))
	}
	for range r.IntN(3) {
		if tag := pick(r, "a", "ab", "abc", "b", "c,d"); !slices.Contains(o.tags, tag) {
			o.tags = append(o.tags, tag)
		}
	}
	return o
}

func (o thing) manifest() map[string]any {
	spec := map[string]any{}
	if o.color != nil {
		spec["color"] = *o.color
	}
	if o.size != nil {
		spec["size"] = *o.size
	}
	if o.tags != nil {
		spec["tags"] = o.tags
	}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"namespace": o.namespace,
			"name": o.name}, "spec": spec,
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// condition is a condition as command-line flags and as a function.
type condition struct {
	args  []string
	holds func(thing) bool
}

// randomCondition uses all operators and flags.
func randomCondition(r *rand.Rand) condition {
	expression, holds := randomExpression(r)
	switch r.IntN(6) {
	case 0:
		return condition{[]string{"--not", expression}, func(o thing) bool { return !holds(o) }}
	case 1:
		return condition{[]string{"--missing", "tag"}, func(o thing) bool { return len(o.tags) == 0 }}
	case 2:
		n := pick(r, -1, 2, 10)
		return condition{[]string{"--where", fmt.Sprintf("@.spec.size > %d", n)},
			func(o thing) bool { return o.size != nil && *o.size > n }}
	case 3:
		return condition{[]string{"--where", ".spec.color"}, func(o thing) bool { return o.color != nil }}
	}
	return condition{[]string{"--index", expression}, holds}
}

func randomExpression(r *rand.Rand) (string, func(thing) bool) {
	color, tag, n := pick(r, "red", "light blue", "", "green"), pick(r, "a", "ab",
		"c,d"), pick(r, -3, 1, 9, 10)
	is := func(o thing, c string) bool { return o.color != nil && *o.color == c }
	sized := func(holds func(int) bool) func(thing) bool {
		return func(o thing) bool { return o.size != nil && holds(*o.size) }
	}
	switch r.IntN(11) {
	case 0:
		return fmt.Sprintf("color=%q", color), func(o thing) bool { return is(o, color) }
	case 1:
		return fmt.Sprintf("color!=%q", color), func(o thing) bool { return !is(o, color) }
	case 2:
		return fmt.Sprintf("color in (blue, %q)", color), func(o thing) bool {
			return is(o, color) ||
				is(o, "blue")
		}
	case 3:
		return fmt.Sprintf("size<%d", n), sized(func(s int) bool { return s < n })
	case 4:
		return fmt.Sprintf("size<=%d", n), sized(func(s int) bool { return s <= n })
	case 5:
		return fmt.Sprintf("size>%d", n), sized(func(s int) bool { return s > n })
	case 6:
		return fmt.Sprintf("size>=%d", n), sized(func(s int) bool { return s >= n })
	case 7:
		return fmt.Sprintf("tag^=%q", tag), func(o thing) bool {
			return slices.ContainsFunc(o.tags, func(t string) bool { return strings.HasPrefix(t, tag) })
		}
	case 8:
		return "!size", func(o thing) bool { return o.size == nil }
	case 9:
		return fmt.Sprintf("tag=%q && color", tag), func(o thing) bool {
			return slices.Contains(o.tags,
				tag) && o.color != nil
		}
	}
	return fmt.Sprintf("(namespace=web || size in [0, %d))", n), func(o thing) bool {
		return o.namespace == "web" || o.size != nil && *o.size >= 0 && *o.size < n
	}
}

// TestQueryModel compares random queries in all output formats with a scan of all objects.
func TestQueryModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	things := make([]thing, 40)
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for i := range things {
		things[i] = randomThing(r, i)
		items = append(items, things[i].manifest())
	}
	list["items"] = items
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(things, func(a, b thing) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	base := []string{"query", "things", "--from", write(t, "objects.json", string(text)), "--config",
		write(t, "c.yaml", modelIndexes)}

	for range 80 {
		args, found := slices.Clone(base), slices.Clone(things)
		var conditions []condition
		for range r.IntN(4) {
			conditions = append(conditions, randomCondition(r))
		}
		any := len(conditions) > 1 && r.IntN(2) == 0
		for _, c := range conditions {
			args = append(args, c.args...)
		}
		if any {
			args = append(args, "--or")
		}
		namespace := pick(r, "", "web")
		if namespace != "" {
			args = append(args, "-n", namespace)
		}
		found = slices.DeleteFunc(found, func(o thing) bool {
			fulfilled := 0
			for _, c := range conditions {
				if c.holds(o) {
					fulfilled++
				}
			}
			return namespace != "" && o.namespace != namespace || any && fulfilled == 0 || !any &&
				fulfilled < len(conditions)
		})
		checkForm(t, r, args, found)
	}
}

func checkForm(t *testing.T, r *rand.Rand, args []string, found []thing) {
	t.Helper()
	switch r.IntN(5) {
	case 0:
		crdcache(t, append(args, "--count")...).expect(t, cli.ExitOK, fmt.Sprintln(len(found)))
	case 1:
		crdcache(t, append(args, "--values", "tag")...).expect(t, cli.ExitOK,
			joinLines(slices.Sorted(maps.Keys(tagCounts(found)))))
	case 2:
		result, counts := crdcache(t, append(args, "--group-by", "tag", "--no-headers")...), tagCounts(found)
		var got []string
		for line := range strings.Lines(result.out) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		const none = "\xff" // a value that sorts last
		for _, o := range found {
			if len(o.tags) == 0 {
				counts[none]++
			}
		}
		want := slices.SortedFunc(maps.Keys(counts),
			func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
		for i, tag := range want {
			want[i] = fmt.Sprintf("%s %d", strings.Replace(tag, none, "<none>", 1), counts[tag])
		}
		if result.code != cli.ExitOK || !slices.Equal(got, want) {
			t.Errorf("%q: exit code %d, groups %q, want %q", args[6:], result.code, got, want)
		}
	case 3:
		bySize(r, found, &args)
		checkPages(t, args, found, 1+r.IntN(7))
	default:
		checkPages(t, args, found, 1+r.IntN(7))
	}
}

// bySize sorts the objects by size, those without a size last.
func bySize(r *rand.Rand, found []thing, args *[]string) {
	*args = append(*args, "--sort-by", "size")
	sign := 1
	if r.IntN(2) == 0 {
		*args, sign = append(*args, "--descending"), -1
	}
	slices.SortStableFunc(found, func(a, b thing) int {
		switch {
		case a.size == nil && b.size == nil:
			return 0
		case a.size == nil:
			return 1
		case b.size == nil:
			return -1
		}
		return sign * cmp.Compare(*a.size, *b.size)
	})
}

func checkPages(t *testing.T, args []string, found []thing, limit int) {
	t.Helper()
	args = append(args, "--keys-only", "--limit", fmt.Sprint(limit))
	var got, want []string
	for _, o := range found {
		want = append(want, o.key())
	}
	page := crdcache(t, args...)
	for {
		got = append(got, strings.Fields(page.out)...)
		_, token, more := strings.Cut(page.errOut, "there is more: --continue ")
		if page.code != cli.ExitOK || !more || len(got) > len(want) {
			break
		}
		page = crdcache(t, append(args, "--continue", strings.TrimSpace(token))...)
	}
	if page.code != cli.ExitOK || !slices.Equal(got, want) {
		t.Errorf("%q: exit code %d\n got %q\nwant %q\n%s", args[6:], page.code, got, want, page.errOut)
	}
}

func tagCounts(found []thing) map[string]int {
	counts := map[string]int{}
	for _, o := range found {
		for _, tag := range o.tags {
			counts[tag]++
		}
	}
	return counts
}

func joinLines(words []string) string {
	text := ""
	for _, word := range words {
		text += word + "\n"
	}
	return text
}
