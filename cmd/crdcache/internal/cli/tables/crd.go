package tables

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
)

// crdRows returns the rows that a CRD declares; nil for a type without a CRD.
func crdRows(ctx context.Context, client dynamic.Interface, r discovery.Resource) (output.Rows, error) {
	if !strings.Contains(r.GVR.Group, ".") {
		return nil, nil // the group of a CRD has a dot
	}
	definition, err := crd.Fetch(ctx, client, r.GVR.GroupResource())
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	version, _ := definition.Version(r.GVR.Version)
	return output.NewRows(version.Columns), nil
}
