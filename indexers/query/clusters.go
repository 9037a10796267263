package query

import (
	"slices"
	"strings"
)

// ClusterPage is a page of the objects of several clusters, such as a dynamicinformer.Group's. The
// caller queries the clusters in the order of their names, each with its own Querier, because references stay
// within a cluster. It is not safe for concurrent use.
type ClusterPage struct {
	options Options // Limit is that of all clusters, Continue the position in the first cluster
	first   string
	found   int
}

// NewClusterPage returns the page for Options.Limit and Options.Continue, and the name of the cluster at
// which it begins. The name is empty for the first page. The cluster may have left the group.
func NewClusterPage(options Options) (page *ClusterPage, first string, err error) {
	if options.Continue != "" {
		slash := strings.LastIndexByte(options.Continue, '/') // the name of a cluster can have slashes
		if slash < 0 {
			return nil, "", ErrContinue
		}
		first, options.Continue = options.Continue[:slash], options.Continue[slash+1:]
	}
	return &ClusterPage{options: options, first: first}, first, nil
}

// Options returns the options for a query of the next cluster. If the page is full, the query only finds
// out whether the cluster has matching objects.
func (p *ClusterPage) Options(cluster string) (options Options, isFull bool) {
	options = p.options
	if cluster != p.first {
		options.Continue = ""
	}
	if options.Limit <= 0 {
		return options, false
	}
	remaining := options.Limit - p.found
	options.Limit = max(remaining, 1)
	return options, remaining <= 0
}

// Add records the number of objects in the result of a cluster, and its continue token. It returns the token
// of the next page; empty if the page continues with the next cluster.
func (p *ClusterPage) Add(cluster string, objects int, token string) (next string) {
	_, isFull := p.Options(cluster)
	p.found += objects
	switch {
	case isFull && objects > 0:
		return cluster + "/"
	case !isFull && token != "":
		return cluster + "/" + token
	}
	return ""
}

// PrependCluster returns groups with the cluster as the first of Group.Values.
func PrependCluster(cluster string, groups []Group) []Group {
	groups = slices.Clone(groups)
	for i, g := range groups {
		groups[i].Values = slices.Insert(slices.Clone(g.Values), 0, cluster)
	}
	return groups
}
