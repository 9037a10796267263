package experiment

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	kubectl "k8s.io/client-go/util/jsonpath"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// The JSONPath expressions that are measured alone.
const (
	fieldPath  = ".spec.issuerRef.name"
	filterPath = `.status.conditions[?(@.type=="Ready")].status`
)

// eightPaths are typical paths of several indexes.
var eightPaths = []string{
	".metadata.namespace", ".metadata.name", ".metadata.labels.team", ".spec.secretName",
	fieldPath, ".spec.dnsNames[*]", ".spec.privateKey.algorithm", filterPath,
}

var errNothingFound = errors.New("nothing was found")

// evaluator evaluates an expression over a decoded object.
type evaluator func(object map[string]any) error

// evaluatePaths measures single expressions over decoded objects, and eight expressions over JSON.
func evaluatePaths(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	_, items := fetchSamples(ctx, task)
	objects := make([]map[string]any, len(items))
	for i, item := range items {
		check(json.Unmarshal(item, &objects[i]))
	}
	compile, eight := clientGoEvaluator, newClientGoEightPaths
	if task.Subject == Crdcache {
		compile, eight = crdcacheEvaluator, newCrdcacheEightPaths
	}
	metrics := map[string]float64{}
	for _, p := range []struct {
		path, metric string
		objects      []map[string]any
	}{
		{fieldPath, PathFieldSameObject, objects[:1]},
		{fieldPath, PathField, objects},
		{filterPath, PathFilter, objects},
	} {
		evaluate := compile(p.path)
		metrics[p.metric] = averageCost(task.Budget, func(n int) error {
			if err := evaluate(p.objects[n%len(p.objects)]); err != nil {
				return fmt.Errorf("%s: %w", p.path, err)
			}
			return nil
		})
	}
	evaluate := eight()
	metrics[PathEight] = averageCost(task.Budget, func(n int) error { return evaluate(items[n%len(items)]) })
	return Outcome{Metrics: metrics}, nil
}

func clientGoEvaluator(expression string) evaluator {
	path := kubectl.New("benchmark").AllowMissingKeys(true)
	check(path.Parse("{" + expression + "}"))
	return func(object map[string]any) error {
		found, err := path.FindResults(object)
		if err == nil && len(found[0]) == 0 {
			err = errNothingFound
		}
		return err
	}
}

func crdcacheEvaluator(expression string) evaluator {
	path, err := jsonpath.Compile(expression)
	check(err)
	return func(object map[string]any) error {
		found := 0
		path.Find(object, func(any) bool { found++; return true })
		if found == 0 {
			return errNothingFound
		}
		return nil
	}
}

// newClientGoEightPaths decodes the object first, as client-go requires.
func newClientGoEightPaths() func(raw []byte) error {
	var evaluators []evaluator
	for _, expression := range eightPaths {
		evaluators = append(evaluators, clientGoEvaluator(expression))
	}
	return func(raw []byte) error {
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			return err
		}
		for _, evaluate := range evaluators {
			if err := evaluate(object); err != nil {
				return err
			}
		}
		return nil
	}
}

func newCrdcacheEightPaths() func(raw []byte) error {
	var exprs []jsonpath.Expr
	for _, expression := range eightPaths {
		path, err := jsonpath.Compile(expression)
		check(err)
		exprs = append(exprs, path)
	}
	set := jsonpath.NewSet(exprs...)
	return func(raw []byte) error {
		found := 0
		err := set.FindJSON(raw, func(int, jsonpath.Value) bool { found++; return true })
		if err == nil && found < len(eightPaths) {
			err = errNothingFound
		}
		return err
	}
}
