package discovery_test

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
)

// firstResultCache answers with its first result. client-go's mappers repeat the requests for every name.
type firstResultCache struct {
	clientdiscovery.DiscoveryInterface
	once      sync.Once
	groups    []*metav1.APIGroup
	resources []*metav1.APIResourceList
	err       error
}

func (f *firstResultCache) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	f.once.Do(func() { f.groups, f.resources, f.err = f.DiscoveryInterface.ServerGroupsAndResources() })
	return f.groups, f.resources, f.err
}
