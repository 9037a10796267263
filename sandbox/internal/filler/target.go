package filler

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var certificateResource = schema.GroupVersionResource{
	Group: "cert-manager.io", Version: "v1", Resource: "certificates",
}

const certificateKind = "Certificate"

// checkServed returns an error with a remedy if the server has no Certificates.
func checkServed(ctx context.Context, dyn dynamic.Interface) error {
	_, err := dyn.Resource(certificateResource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the server has no %s: load cert-manager's CRDs first",
			certificateResource.GroupResource())
	}
	return err
}

func etcdKey(namespace, name string) string {
	return strings.Join([]string{"/registry", certificateResource.Group, certificateResource.Resource,
		namespace, name}, "/")
}
