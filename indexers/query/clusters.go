package query

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Clusters answers queries over the clusters of a dynamicinformer.Group. It maps the name of each cluster
// to its Querier. Results, pages and groups are ordered by cluster first. References stay within a cluster,
// because each Querier has the reference graph of its cluster. Errors name the cluster. The methods are
// safe for concurrent use while the map does not change.
type Clusters map[string]*Querier

// ClusterResult is the part of an answer that belongs to a cluster. Its own Continue is always empty.
type ClusterResult struct {
	Cluster string
	*Result
}

// Query returns the matching objects of each cluster, ordered by name of the cluster. Clusters without
// matching objects on the page are included, with their Freshness, up to the last one with objects.
// Options.Limit counts the objects of all clusters. next is the token of the next page, for
// Options.Continue; it is empty on the last page.
func (c Clusters) Query(ctx context.Context, query Query, options Options) (results []ClusterResult,
	next string, err error) {
	page, first, err := NewClusterPage(options)
	if err != nil {
		return nil, "", err
	}
	for cluster, querier := range c.startingAt(first) {
		options, isFull := page.Options(cluster)
		r, err := querier.Query(ctx, query, options)
		if err != nil {
			return nil, "", fmt.Errorf("cluster %q: %w", cluster, err)
		}
		if next = page.Add(cluster, r.Len(), r.Continue); !isFull {
			r.Continue = ""
			results = append(results, ClusterResult{cluster, r})
		}
		if next != "" {
			return results, next, nil
		}
	}
	return results, "", nil
}

// ClusterPage is a page of the objects of several clusters, for programs that query the clusters themselves.
// [Clusters.Query] uses it. The clusters are queried in the order of their results.
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

// startingAt iterates over the clusters by name, beginning at first.
func (c Clusters) startingAt(first string) iter.Seq2[string, *Querier] {
	return func(yield func(string, *Querier) bool) {
		for _, cluster := range slices.Sorted(maps.Keys(c)) {
			if cluster >= first && !yield(cluster, c[cluster]) {
				return
			}
		}
	}
}

// Count returns the number of matching objects of each cluster.
func (c Clusters) Count(ctx context.Context, query Query, options Options) (map[string]int, error) {
	counts := map[string]int{}
	for cluster, querier := range c.startingAt("") {
		var err error
		if counts[cluster], err = querier.Count(ctx, query, options); err != nil {
			return nil, fmt.Errorf("cluster %q: %w", cluster, err)
		}
	}
	return counts, nil
}

// Aggregate groups the matching objects by cluster and then as [Querier.Aggregate] does. The cluster is the
// first of Group.Values.
func (c Clusters) Aggregate(ctx context.Context, query Query, aggregation Aggregation,
	options Options) ([]Group, error) {
	var groups []Group
	for cluster, querier := range c.startingAt("") {
		r, err := querier.Aggregate(ctx, query, aggregation, options)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", cluster, err)
		}
		groups = append(groups, PrependCluster(cluster, r.Groups)...)
	}
	return groups, nil
}

// PrependCluster returns groups with the cluster as the first of Group.Values.
func PrependCluster(cluster string, groups []Group) []Group {
	groups = slices.Clone(groups)
	for i, g := range groups {
		groups[i].Values = slices.Insert(slices.Clone(g.Values), 0, cluster)
	}
	return groups
}
