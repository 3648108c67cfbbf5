// What the tests of docs/guide/redis-clients.md and docs/guide/cookbook.md use, with the sums in go.sum. Go 1.19 compiles these versions.
module clients

go 1.19

require (
	github.com/redis/go-redis/v9 v9.14.1
	github.com/segmentio/kafka-go v0.4.47
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/klauspost/compress v1.15.9 // indirect
	github.com/pierrec/lz4/v4 v4.1.15 // indirect
)
