package cel

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/expression"
)

// outcome is the result of a condition on an object: true, false, failure (of the evaluation) or refused (the
// condition does not compile).
type outcome string

// apiServer evaluates conditions as an API server evaluates the validation rules of a CRD.
type apiServer struct{ structural *schema.Structural }

func newAPIServer(t testing.TB, definition string) apiServer {
	t.Helper()
	var v1 apiextensionsv1.CustomResourceDefinition
	must(t, yaml.Unmarshal([]byte(definition), &v1))
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		v1.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil)
	must(t, err)
	structural, err := schema.NewStructural(&props)
	must(t, err)
	return apiServer{structural}
}

// evaluate returns "refused" if the API server refuses the rule.
func (s apiServer) evaluate(rule string, object map[string]any) outcome {
	rules := *s.structural
	rules.XValidations = apiextensionsv1.ValidationRules{{Rule: rule}}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiled, err := cel.Compile(&rules, model.SchemaDeclType(&rules, true), apiservercel.PerCallLimit, base,
		cel.StoredExpressionsEnvLoader())
	if err != nil || compiled[0].Error != nil {
		return "refused"
	}
	validator := cel.NewValidator(&rules, true, apiservercel.PerCallLimit)
	errs, _ := validator.Validate(context.Background(), nil, &rules, object, nil,
		apiservercel.RuntimeCELCostBudget)
	switch {
	case len(errs) == 0:
		return "true"
	case strings.Contains(errs[0].Detail, "failed rule: "):
		return "false"
	}
	return "failure"
}

// evaluate evaluates a condition on an object with a schema; nil is refused.
func evaluate(e expression.Expression, object map[string]any) outcome {
	if e == nil {
		return "refused"
	}
	switch result, _ := e.Eval(context.Background(), object); result {
	case true:
		return "true"
	case false:
		return "false"
	default:
		return "failure"
	}
}

// generator returns random conditions and objects for the schema in lamps.yaml.
type generator struct{ *rand.Rand }

func choose[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

func (g generator) text(depth int) string {
	if depth > 0 && g.IntN(3) == 0 {
		return choose(g, g.text(depth-1)+" + "+g.text(depth-1),
			"("+g.condition(depth-1)+" ? "+g.text(depth-1)+" : "+g.text(depth-1)+")",
			"string("+g.number(depth-1)+")", g.text(depth-1)+".lowerAscii()", g.text(depth-1)+".substring(1)",
			"self.spec.rooms.map(r, r.name).join(',')", "dyn(self.spec.port)", "self.spec.colors['high']")
	}
	return choose(g, "self.spec.class", "self.spec.memory", "'gold'", "'1Gi'", "''",
		"self.spec.?class.orValue('x')", "self.spec.rooms[0].name", "self.metadata.name")
}

func (g generator) number(depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		operator := choose(g, " + ", " - ", " * ", " / ", " % ")
		return "(" + g.number(depth-1) + operator + g.number(depth-1) + ")"
	}
	return choose(g, "self.spec.watts", "1", "0", "9223372036854775807", "self.spec.rooms.size()",
		"self.spec.class.size()",
		"self.spec.rooms[1].size", "int(self.spec.ratio)", "int(double(self.spec.ratio) * 2.0)",
		"self.spec.tags.size()", "self.spec.rooms.map(r, r.size).sum()")
}

// fraction returns an expression of a number with a fraction, or of a part of one.
func (g generator) fraction(depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		a, b := g.fraction(depth-1), g.fraction(depth-1)
		return choose(g, "("+a+choose(g, " + ", " - ", " * ", " / ")+b+")",
			"("+g.condition(depth-1)+" ? "+a+" : "+b+")",
			"[double("+a+"), double("+b+")].sum()", "["+a+", "+b+"][0]", "double("+a+")", "-"+a)
	}
	return choose(g, "self.spec.ratio", "self.spec['ratio']", "self.spec.?ratio.orValue(0.5)",
		"self.spec.ratios[0]",
		"self.spec.ratios.sum()", "self.spec.ratios.map(r, r).sum()", "self.spec.ratios.map(r, double(r)).sum()",
		"1.5", "2.0",
		"self.spec.shares.a", "self.spec.shares['a']", "self.spec.slots.map(s, s.load)[0]",
		"self.spec.slots[0].load",
		"self.spec.ratios.filter(r, r > 1.0)[0]", "optional.of(self.spec.ratio).value()",
		"self.spec.?ratio.or(optional.of(2.0)).value()",
		"self.spec.?ratio.optMap(r, r * 2.0).orValue(1.0)")
}

// typed returns a condition whose result can depend on the schema.
func (g generator) typed(depth int) string {
	number := g.fraction(depth)
	return choose(g, number+choose(g, " == ", " > ", " <= ", " != ")+g.fraction(depth),
		"type("+number+") == double",
		"string("+number+") == '1'", "'%s'.format(["+number+"]) == '1'", "'%d'.format(["+number+"]) == '1'",
		"dyn("+number+") == 1", number+" in self.spec.ratios", "self.spec.ratios.isSorted()",
		"self.spec.ratios == [1.0, 2.5]",
		"self.spec.ratios.indexOf("+number+") == 0", "int("+number+") > 1", "self.spec.groups == ['b', 'a']",
		"(self.spec.groups + ['a']).size() == 2", "self.spec.groups.filter(x, x != 'c') == ['a', 'b']",
		"self.spec.groups.exists(x, x == 'a')", "'a' in self.spec.groups",
		"sets.equivalent(self.spec.groups, ['b', 'a'])",
		"self.spec.slots == [{'name': 'a', 'load': 1.0}]", "self.spec.slots + self.spec.slots == self.spec.slots",
		"(self.spec.paused ? self.spec.groups : ['a']) == ['b', 'a']", "[self.spec.groups] == [['b', 'a']]",
		"self.spec.slots.map(s, s.load) == [1.0]", "self.spec.ratios.exists(r, type(r) == int)")
}

func (g generator) condition(depth int) string {
	if g.IntN(4) == 0 {
		return g.typed(depth)
	}
	if depth > 0 && g.IntN(2) == 0 {
		return choose(g, "("+g.condition(depth-1)+" && "+g.condition(depth-1)+")",
			"("+g.condition(depth-1)+" || "+g.condition(depth-1)+")", "!("+g.condition(depth-1)+")",
			"self.spec.rooms.all(r, r.name != "+g.text(depth-1)+" && "+g.condition(depth-1)+")",
			"self.spec.rooms.exists(r, r.size > "+g.number(depth-1)+")",
			"self.spec.colors.exists(k, k == "+g.text(depth-1)+")", g.text(depth-1)+".matches('^g')")
	}
	return choose(g, g.text(depth)+choose(g, " == ", " != ", " < ")+g.text(depth),
		g.number(depth)+choose(g, " == ", " > ", " <= ")+g.number(depth), "self.spec.paused",
		"has(self.spec.class)", "has(self.spec.rooms)", "self.spec.ratio > 1.0", "self.spec.ratio == 1.0",
		"self.spec.ratio in [1.0, 2.5]", "'gold' in self.spec.tags", "'high' in self.spec.colors",
		"self.spec.port == 'http'", "self.spec.port == 80",
		"quantity(self.spec.memory).isGreaterThan(quantity('1Mi'))", "isQuantity(self.spec.memory)",
		"self.spec.tags == ['a', 'b']", "self.spec.rooms.exists_one(r, has(r.size))", "self.spec.undefined",
		"self.spec.class > 1")
}

// object returns a lamp that lacks some fields.
func (g generator) object() map[string]any {
	fields := map[string]any{
		"class": choose(g, "gold", "silver", "", "é", "GOLD"), "watts": choose[int64](g, 0, 1, 3, -7, 1<<62),
		"ratio": choose[any](g, int64(1), 1.0, 2.5, int64(-3)), "paused": g.IntN(2) == 0,
		"memory": choose(g, "1Gi", "x", "512Mi"), "port": choose[any](g, "http", int64(80)),
		"ratios": choose(g, []any{}, []any{int64(1), 2.5},
			[]any{int64(1), int64(2)}), "shares": map[string]any{"a": choose[any](g, int64(1), 0.5)},
		"groups": choose(g, []any{"a", "b"}, []any{"b", "a"}, []any{"a"}),
		"slots": choose(g, []any{map[string]any{"name": "a", "load": int64(1)}},
			[]any{map[string]any{"name": "b", "load": 1.5}, map[string]any{"name": "a", "load": int64(2)}}),
		"tags":   choose(g, []any{}, []any{"a", "b"}, []any{"gold"}),
		"colors": choose(g, map[string]any{}, map[string]any{"high": "gold"}, map[string]any{"gold": "x"}),
		"rooms": choose(g, []any{}, []any{map[string]any{"name": "a", "size": int64(2)}},
			[]any{map[string]any{"name": "gold"}, map[string]any{"name": "b", "size": int64(1)}}),
	}
	spec := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if g.IntN(8) > 0 {
			spec[name] = fields[name]
		}
	}
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Lamp",
		"metadata": map[string]any{"name": "lamp", "namespace": "hall"}, "spec": spec}
}

// variants are other types of fields of lamps.yaml.
var variants = [][2]string{{"list-type: set", "list-type: atomic"},
	{"list-type: map, x-kubernetes-list-map-keys: [name]", "list-type: atomic"}, {"type: integer", "type: number"},
	{"ratios: {type: array,", "ratios: {type: array, x-kubernetes-list-type: set,"}}

// readLamps returns the API server for a variant of lamps.yaml, and the schema with the fields of metadata
// that rules can read. The bits of variant select the variants.
func readLamps(t testing.TB, variant uint64) (apiServer, *crd.Schema) {
	t.Helper()
	data, err := os.ReadFile("testdata/lamps.yaml")
	must(t, err)
	text := string(data)
	for i, v := range variants {
		if variant>>i&1 == 1 {
			text = strings.ReplaceAll(text, v[0], v[1])
		}
	}
	definitions, err := crd.Read(strings.NewReader(text), "lamps.yaml")
	must(t, err)
	version, _ := definitions[0].Version("v1")
	root := *version.Schema
	root.Properties = maps.Clone(root.Properties)
	root.Properties["metadata"] = &crd.Schema{Type: "object",
		Properties: map[string]*crd.Schema{"name": {Type: "string"}}}
	return newAPIServer(t, text), &root
}

// FuzzAPIServer compares conditions on random objects of several schemas with validation rules of an API
// server. Both refuse the same conditions. Without a schema, only conditions that need one have another
// result.
func FuzzAPIServer(f *testing.F) {
	seeds := uint64(30)
	if os.Getenv("CRDCACHE_NIGHTLY") != "" {
		seeds = 80
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		server, root := readLamps(t, seed)
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		rule := g.condition(3)
		untyped, err := compile(rule)
		if err != nil {
			if want := server.evaluate(rule, g.object()); want != "refused" {
				t.Errorf("%s is refused: %v; an API server compiles it", rule, err)
			}
			return
		}
		typed, problems := untyped.(*celExpression).WithSchema(root)
		if typed == nil || problems != nil {
			typed, untyped = nil, nil
		}
		for range 5 {
			object := g.object()
			want := server.evaluate(rule, object)
			for _, e := range []expression.Expression{typed, untyped} {
				isUntyped, got := e != typed, evaluate(e, object)
				if want != got && !(isUntyped && untyped.(*celExpression).NeedsSchema()) {
					t.Errorf("the outcome of %s = %s, want %s (with the schema: %v) for\n%s", rule, got, want,
						!isUntyped, fmt.Sprint(object["spec"]))
				}
			}
		}
	})
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
