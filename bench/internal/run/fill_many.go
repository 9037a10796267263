package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

const (
	// fillManyWorkers is how many types are made at once.
	fillManyWorkers = 8
	// servedPause is how long to leave a server alone that does not serve a type yet.
	servedPause = 100 * time.Millisecond
	// fillManyTimeout is far more than it takes.
	fillManyTimeout = 5 * time.Minute
)

// FillMany installs many types, with a few objects each.
func (s *sandbox) FillMany(ctx context.Context) error {
	if s.filled > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fillManyTimeout, fmt.Errorf("it took more than %v", fillManyTimeout))
	defer cancel()
	client, err := s.Client()
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	work := make(chan int, experiment.ManyTypes)
	for n := range experiment.ManyTypes {
		work <- n
	}
	close(work)
	var running sync.WaitGroup
	for range fillManyWorkers {
		running.Go(func() { // ends when there is no work
			for n := range work {
				if err := fillType(ctx, client, experiment.ManyKind(n)); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("filling the sandbox with many types: %w", err)
	}
	s.filled = experiment.ManyTypes * experiment.ManyEach
	return nil
}

// fillType installs one type and makes its objects.
func fillType(ctx context.Context, client *rest.RESTClient, kind string) error {
	group, version, resource := experiment.ManyGroupVersion.Group, experiment.ManyGroupVersion.Version, strings.ToLower(kind)+"s"
	definition := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": resource + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": resource, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}
	if err := post(ctx, client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition); err != nil {
		return err
	}
	for n := range experiment.ManyEach {
		object := map[string]any{
			"apiVersion": group + "/" + version, "kind": kind,
			"metadata": map[string]any{"name": fmt.Sprintf("object-%02d", n), "labels": map[string]any{"example.com/number": fmt.Sprint(n)}},
			"spec":     map[string]any{"text": strings.Repeat("abcdefghij", 100), "number": n},
		}
		if err := post(ctx, client, fmt.Sprintf("/apis/%s/%s/namespaces/default/%s", group, version, resource), object); err != nil {
			return err
		}
	}
	return nil
}

// post creates an object as soon as its type is served.
func post(ctx context.Context, client *rest.RESTClient, path string, object map[string]any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	for {
		err := client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
		if !apierrors.IsNotFound(err) {
			return err
		}
		if !sleep(ctx, servedPause) {
			return context.Cause(ctx)
		}
	}
}
