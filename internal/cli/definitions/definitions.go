// Package definitions gets CustomResourceDefinitions from where the person who runs a verb says: files or a cluster.
package definitions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
)

// extensions are those of files in a directory that are read.
var extensions = []string{".yaml", ".yml", ".json"}

// FromFiles reads all definitions of files, and of the YAML and JSON files below directories. Files without any
// definition are fine as long as one has some. What can be read comes together with the joined errors.
func FromFiles(paths []string) ([]*crd.Definition, error) {
	var all []*crd.Definition
	var errs []error
	for _, path := range paths {
		files, err := expand(path)
		errs = append(errs, err)
		for _, file := range files {
			found, err := crd.ReadFile(file)
			if err != nil && !errors.Is(err, crd.ErrNone) {
				errs = append(errs, err)
			}
			all = append(all, found...)
		}
	}
	err := errors.Join(errs...)
	if len(all) == 0 && err == nil {
		err = fmt.Errorf("%w in %q", crd.ErrNone, paths)
	}
	return all, err
}

// expand gives a file itself, and of a directory the files below it that may hold definitions.
func expand(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, nil // reading it says what is wrong
	}
	var files []string
	root := path + string(filepath.Separator) // a link to a directory is one
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
		case slices.Contains(extensions, filepath.Ext(name)):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// pageSize bounds how many definitions are in memory at once as the server sends them: one can be 1 MB.
const pageSize = 20

// FromCluster reads the definitions of a cluster that belong to one of the groups; every group where wanted
// returns true.
func FromCluster(ctx context.Context, client dynamic.Interface, wanted func(group string) bool) ([]*crd.Definition, error) {
	var all []*crd.Definition
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(crd.GVR).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("reading the CustomResourceDefinitions of the cluster: %w", err)
		}
		for _, item := range page.Items {
			summary, err := crd.Summary(item.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the CustomResourceDefinition %s: %w", item.GetName(), err)
			}
			if !wanted(summary.Group) {
				continue
			}
			definition, err := crd.FromUnstructured(item.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the CustomResourceDefinition %s: %w", item.GetName(), err)
			}
			all = append(all, definition)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}
