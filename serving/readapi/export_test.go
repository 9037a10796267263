package readapi

import "github.com/crdcache/crdcache/internal/naming"

// Names that tests of package readapi_test use.
const (
	AggregatedMedia = aggregatedMedia
	CheckEvery      = contextCheckInterval
	Latest          = continueFromLatest
	MaxSelector     = maxSelectorLength
	MediaJSON       = mediaJSON
	ShardEnd        = shardEnd
	ShardStart      = shardStart
	WorkPerSlice    = workPerSlice
)

// Functions that tests of package readapi_test use.
var (
	NewContinueToken = newContinueToken
	ObjectKey        = naming.KeyOf
	PrefixOf         = prefixOf
	Scalar           = scalarField
)
