module github.com/delayq/delayq/sdk/go

go 1.19
