package readapi

// Names that tests of package readapi_test use.
const (
	AggregatedMedia = aggregatedMedia
	CheckEvery      = contextCheckInterval
	Latest          = continueFromLatest
	MaxSelector     = maxSelector
	MediaJSON       = mediaJSON
	ShardEnd        = shardEnd
	ShardStart      = shardStart
	WorkPerSlice    = workPerSlice
)

// Functions that tests of package readapi_test use.
var (
	NewContinueToken = newContinueToken
	ObjectKey        = objectKey
	PrefixOf         = prefixOf
	Scalar           = scalarField
)
