package crd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/manifest"
)

// ErrNoDefinitions is the error for a file without any definition.
var ErrNoDefinitions = errors.New("no CustomResourceDefinition found")

// Fetch gets one definition, with schemas, from a cluster.
func Fetch(ctx context.Context, client dynamic.Interface, gr schema.GroupResource) (*Definition, error) {
	object, err := client.Resource(GVR).Get(ctx, gr.String(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", gr, err)
	}
	return FromUnstructured(object.Object)
}

// ReadFile calls Read with the file at path.
func ReadFile(path string) ([]*Definition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read returns the definitions in YAML or JSON. The text may be compressed with gzip or zstd, and have any
// number of documents, each an object or a List of objects. Read ignores other objects; a definition of the
// removed v1beta1 is an error. It returns all readable definitions together with the joined errors: one for
// each invalid object, with the file, the line and the document, and the error of reading r. If there is
// neither a definition nor an error, it returns ErrNoDefinitions.
func Read(r io.Reader, file string) ([]*Definition, error) {
	var out []*Definition
	var problems []error
	err := manifest.Read(context.Background(), r, func(e manifest.Entry) bool {
		d, err := readEntry(e)
		if d != nil {
			out = append(out, d)
		}
		if err != nil {
			problems = append(problems, &manifest.Problem{File: file, Position: e.Position, Err: err})
		}
		return true
	})
	if err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", file, err))
	}
	if len(out) == 0 && len(problems) == 0 {
		return nil, fmt.Errorf("%s: %w", file, ErrNoDefinitions)
	}
	return out, errors.Join(problems...)
}

// readEntry returns the definition of an entry, or nil for another object.
func readEntry(e manifest.Entry) (*Definition, error) {
	switch {
	case errors.Is(e.Err, manifest.ErrNoKind), errors.Is(e.Err, manifest.ErrNotRead), e.Err == nil &&
		e.Kind != "CustomResourceDefinition":
		return nil, nil
	case e.Err != nil:
		return nil, e.Err
	case e.APIVersion == "apiextensions.k8s.io/v1beta1":
		return nil, fmt.Errorf("%w: v1beta1 was removed in Kubernetes 1.22, convert it to v1", ErrNotCRD)
	}
	var w wireDefinition[wireFullVersion]
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	w.APIVersion, w.Kind = e.APIVersion, e.Kind
	return convertDefinition(&w, wireFullVersion.version)
}
