-- To be written.
return {false, 0}
