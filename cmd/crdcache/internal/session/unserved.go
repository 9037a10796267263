package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
)

// definitionType is the type of CustomResourceDefinitions.
var definitionType = discovery.Resource{GVR: crd.GVR, Scope: discovery.Cluster}

// unservedError replaces the text of a NoMatchError for a type that has a CustomResourceDefinition.
type unservedError struct {
	*discovery.NoMatchError
	text string
}

func (e *unservedError) Error() string { return e.text }

func (e *unservedError) Unwrap() error { return e.NoMatchError }

// explainUnserved returns an error with the conditions of the CustomResourceDefinition of a name that
// discovery does not know. It returns noMatch if there is no such definition, or if it cannot be read.
func (t *Target) explainUnserved(ctx context.Context, noMatch *discovery.NoMatchError) error {
	name, err := discovery.ParseName(noMatch.Name)
	if err != nil || name.HasWildcard() {
		return noMatch
	}
	client, err := t.PlainClient()
	if err != nil {
		return noMatch
	}
	// All calls use one list of the definitions that the user may list.
	t.listDefinitions.Do(func() { t.listedDefinitions, _ = t.objectNames(ctx, definitionType, "") })
	for _, definitionName := range t.listedDefinitions {
		plural, group, _ := strings.Cut(definitionName, ".")
		singular := strings.TrimSuffix(plural, "s")
		if !slices.ContainsFunc(name.Interpretations, func(i discovery.Interpretation) bool {
			return (i.Group == "" || i.Group == group) && (strings.EqualFold(i.Resource, plural) ||
				strings.EqualFold(i.Resource, singular))
		}) {
			continue
		}
		body, err := print.BodyOf(print.ListRequest(client, definitionType, "").Name(definitionName).Do(ctx))
		var object struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err == nil && json.Unmarshal(body, &object) == nil {
			return &unservedError{noMatch, fmt.Sprintf(
				"the server does not serve the type %q, although its CustomResourceDefinition %s exists: %s",
				noMatch.Name, definitionName, describeConditions(object.Status.Conditions))}
		}
	}
	return noMatch
}

// describeConditions returns the conditions that keep a CustomResourceDefinition from being served.
func describeConditions(conditions []metav1.Condition) string {
	var texts []string
	isEstablished := false
	for _, c := range conditions {
		isEstablished = isEstablished || c.Type == "Established" && c.Status == metav1.ConditionTrue
		if c.Type == "Terminating" == (c.Status == metav1.ConditionTrue) {
			texts = append(texts, strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Message), ": "))
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case isEstablished:
		return "it serves no such version, or the API server has not yet published it"
	}
	return "it has no conditions yet"
}
