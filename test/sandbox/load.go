package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	fieldManager  = "crdcache-sandbox"
	servedTimeout = 3 * time.Minute
	// maxParallelApplies limits the objects that are applied concurrently.
	maxParallelApplies = 8
)

// manifest is one object of the files of --load.
type manifest struct {
	*unstructured.Unstructured
	file string
}

func (m manifest) String() string {
	return fmt.Sprintf("%s (%s %s)", m.file, m.GetKind(), m.GetName())
}

// readManifests reads the files of --load, and in directories the files that end in .yaml, .yml or .json. It
// is called before any process starts, so that errors are found early.
func readManifests(paths []string) ([]manifest, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	infos, err := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().
		FilenameParam(false, &resource.FilenameOptions{Filenames: paths, Recursive: true}).Do().Infos()
	manifests := make([]manifest, len(infos))
	for i, info := range infos {
		manifests[i] = manifest{info.Object.(*unstructured.Unstructured), info.Source}
	}
	return manifests, err
}

// applyManifests applies objects to the sandbox of the kubeconfig in three phases: CRDs, until they are
// served, then namespaces, then all other objects. The order within a phase is undefined, and an error ends
// the later phases. It uses server-side apply. It also applies the status if the type has a status
// subresource, so that the output of "kubectl get -o yaml" can be loaded unchanged.
func applyManifests(ctx context.Context, kubeconfig string, manifests []manifest) error {
	if len(manifests) == 0 {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // no client-side limit
	l := &loader{}
	if l.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if l.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return err
	}
	var crds, namespaces, others []manifest
	for _, m := range manifests {
		switch m.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			crds = append(crds, m)
		case schema.GroupKind{Kind: "Namespace"}:
			namespaces = append(namespaces, m)
		default:
			others = append(others, m)
		}
	}
	if err = l.applyAll(ctx, crds); err == nil {
		err = l.awaitServed(ctx, crds)
	}
	for _, phase := range [][]manifest{namespaces, others} {
		if err == nil {
			err = l.applyAll(ctx, phase)
		}
	}
	if err != nil {
		return fmt.Errorf("load manifests: %w", err)
	}
	fmt.Fprintf(os.Stderr, "loaded %d CRDs, %d namespaces, %d other objects\n", len(crds), len(namespaces),
		len(others))
	return nil
}

type loader struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
}

// applyAll applies the objects of one phase concurrently. The error joins all failures.
func (l *loader) applyAll(ctx context.Context, manifests []manifest) error {
	mapper, err := l.newMapper()
	if err != nil || len(manifests) == 0 {
		return err
	}
	errs := make([]error, len(manifests))
	var group errgroup.Group
	group.SetLimit(maxParallelApplies)
	for i, m := range manifests {
		group.Go(func() error {
			if err := l.apply(ctx, mapper, m.Unstructured); err != nil {
				errs[i] = fmt.Errorf("%s: %w", m, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return errors.Join(errs...)
}

func (l *loader) newMapper() (meta.RESTMapper, error) {
	groups, err := restmapper.GetAPIGroupResources(l.discovery)
	if err != nil {
		return nil, fmt.Errorf("discover resources: %w", err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

func (l *loader) apply(ctx context.Context, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	for _, field := range []string{
		"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink",
	} {
		unstructured.RemoveNestedField(object.Object, "metadata", field) // only the server may set them
	}
	var client dynamic.ResourceInterface = l.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		client = l.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := client.Apply(ctx, object.GetName(), object, options); err != nil {
		return err
	}
	if object.Object["status"] == nil {
		return nil
	}
	_, err = client.ApplyStatus(ctx, object.GetName(), object, options)
	if err != nil && !apierrors.IsNotFound(err) { // the type has no status subresource
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

// awaitServed waits until every CRD is in discovery, and its objects can be listed in all served versions. A
// server does not provide both at the same time.
func (l *loader) awaitServed(ctx context.Context, crds []manifest) error {
	for _, crd := range crds {
		var lastErr error
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, servedTimeout, true,
			func(ctx context.Context) (bool, error) {
				lastErr = l.checkServed(ctx, crd.Object)
				return lastErr == nil, nil
			})
		if err != nil {
			return fmt.Errorf("%s: not served: %w", crd, errors.Join(lastErr, err))
		}
	}
	return nil
}

// checkServed returns an error if a CRD is not served.
func (l *loader) checkServed(ctx context.Context, crd map[string]any) error {
	mapper, err := l.newMapper()
	if err != nil {
		return err
	}
	group, _, _ := unstructured.NestedString(crd, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind},
			fmt.Sprint(version["name"]))
		if err != nil {
			return err
		}
		if _, err := l.dynamic.Resource(mapping.Resource).List(ctx,
			metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}
